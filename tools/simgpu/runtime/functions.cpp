// Attributes and occupancy of kernels.
#include "tools/simgpu/runtime/calls.hpp"
#include "tools/simgpu/runtime/registration.hpp"

namespace simgpu::runtime {
namespace {

struct Found {
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;  // the kernel in the current context
  int device = 0;
};

cudaError_t find(const void* host_function, Found& found) {
  if (const cudaError_t error = context_ready()) return error;
  if (const cudaError_t error = find_kernel(host_function, found.kernel)) return error;
  if (const cudaError_t error = current_device(found.device)) return error;
  return translate(driver_call<row::internal_get_function>(&found.function, found.kernel));
}

}  // namespace

SIMGPU_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* host_function) {
  if (attributes == nullptr) return finish(cudaErrorInvalidValue);
  Found found;
  if (const cudaError_t error = find(host_function, found)) return finish(error);
  CUresult failed = CUDA_SUCCESS;
  const auto get = [&](CUfunction_attribute attribute) {
    int value = 0;
    const CUresult result = driver_call<row::cudaFuncGetAttributes>(&value, attribute, found.function);
    if (failed == CUDA_SUCCESS) failed = result;
    return value;
  };
  cudaFuncAttributes a{};
  a.sharedSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  a.constSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  a.localSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  a.maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  a.numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
  a.ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  a.binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  a.cacheModeCA = get(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
  a.maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  a.preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  if (failed != CUDA_SUCCESS) return finish(failed);
  *attributes = a;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaFuncSetAttribute(const void* host_function, cudaFuncAttribute attribute, int value) {
  Found found;
  if (const cudaError_t error = find(host_function, found)) return finish(error);
  return finish(driver_call<row::cudaFuncSetAttribute>(as<CUfunction_attribute>(attribute), value, found.kernel, found.device));
}

SIMGPU_API cudaError_t cudaFuncSetCacheConfig(const void* host_function, cudaFuncCache config) {
  Found found;
  if (const cudaError_t error = find(host_function, found)) return finish(error);
  return finish(driver_call<row::cudaFuncSetCacheConfig>(found.kernel, as<CUfunc_cache>(config), found.device));
}

SIMGPU_API cudaError_t cudaFuncGetName(const char** name, const void* host_function) {
  Found found;
  if (const cudaError_t error = find(host_function, found)) return finish(error);
  return finish(driver_call<row::cudaFuncGetName>(name, found.kernel));
}

SIMGPU_API cudaError_t cudaFuncGetParamInfo(const void* host_function, size_t index, size_t* offset, size_t* size) {
  Found found;
  if (const cudaError_t error = find(host_function, found)) return finish(error);
  return finish(driver_call<row::cudaFuncGetParamInfo>(found.kernel, index, offset, size));
}

SIMGPU_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* host_function) {
  Found found;
  if (const cudaError_t error = find(host_function, found)) return finish(error);
  *function = found.function;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host_function,
                                                                              int threads, size_t shared, unsigned int flags) {
  Found found;
  if (const cudaError_t error = find(host_function, found)) return finish(error);
  return finish(
      driver_call<row::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags>(blocks, found.function, threads, shared, flags));
}

SIMGPU_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host_function, int threads,
                                                                     size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host_function, threads, shared, 0);
}

SIMGPU_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* shared, const void* host_function, int blocks,
                                                                 int threads) {
  Found found;
  if (const cudaError_t error = find(host_function, found)) return finish(error);
  return finish(driver_call<row::cudaOccupancyAvailableDynamicSMemPerBlock>(shared, found.function, blocks, threads));
}

}  // namespace simgpu::runtime
