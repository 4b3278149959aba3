// Kernel launches.
#include <vector>

#include "tools/simgpu/runtime/adapters.hpp"
#include "tools/simgpu/runtime/host_abi.hpp"
#include "tools/simgpu/runtime/registration.hpp"

namespace simgpu::runtime {
namespace {

static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));

struct CallConfiguration {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
};

// f<<<a>>>(g<<<b>>>...) does not exist, but arguments of a launch may launch: hence a stack.
thread_local std::vector<CallConfiguration> configurations;

template <class Row, Form form>
cudaError_t launch_kernel(const KernelLaunch& parameters) {
  return finish(through<Row, form>([&](auto entry) { return launch(entry, parameters); }));
}

// The driver takes kernels, which belong to no context, where it takes functions.
CUfunction as_function(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

// A function may be the host function of a kernel, or a cudaKernel_t that the program got from a
// cudaLibrary_t.
cudaError_t kernel_of(const void* function, CUkernel& kernel) {
  if (function == nullptr) return cudaErrorInvalidDeviceFunction;
  if (const cudaError_t error = context_ready()) return error;
  return find_kernel(function, kernel);
}

template <class Row, Form form>
cudaError_t launch_function(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                            cudaStream_t stream, bool cooperative) {
  CUkernel kernel = nullptr;
  if (const cudaError_t error = kernel_of(function, kernel)) return finish(error);
  return launch_kernel<Row, form>({as_function(kernel), grid, block, shared, stream, arguments, cooperative});
}

}  // namespace

SIMGPU_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}

SIMGPU_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (configurations.empty()) return finish(cudaErrorMissingConfiguration);
  const CallConfiguration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

SIMGPU_API cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* function) {
  CUkernel kernel = nullptr;
  if (const cudaError_t error = kernel_of(function, kernel)) return finish(error);
  *handle = as<cudaKernel_t>(kernel);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaGetKernel(cudaKernel_t* handle, const void* function) { return __cudaGetKernel(handle, function); }

SIMGPU_BOTH_FORMS(__cudaLaunchKernel, _ptsz,
                  (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream),
                  (kernel, grid, block, arguments, shared, stream)) {
  if (const cudaError_t error = context_ready()) return finish(error);
  if (kernel == nullptr) return finish(cudaErrorInvalidDeviceFunction);  // __cudaGetKernel has failed before
  return launch_kernel<row::cudaLaunchKernel, form>({as<CUfunction>(kernel), grid, block, shared, stream, arguments, false});
}

SIMGPU_BOTH_FORMS(cudaLaunchKernel, _ptsz,
                  (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream),
                  (function, grid, block, arguments, shared, stream)) {
  return launch_function<row::cudaLaunchKernel, form>(function, grid, block, arguments, shared, stream, false);
}

SIMGPU_BOTH_FORMS(cudaLaunchCooperativeKernel, _ptsz,
                  (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream),
                  (function, grid, block, arguments, shared, stream)) {
  return launch_function<row::cudaLaunchCooperativeKernel, form>(function, grid, block, arguments, shared, stream, true);
}

SIMGPU_BOTH_FORMS(cudaLaunchKernelExC, _ptsz, (const cudaLaunchConfig_t* config, const void* function, void** arguments),
                  (config, function, arguments)) {
  if (config == nullptr) return finish(cudaErrorInvalidValue);
  CUkernel kernel = nullptr;
  if (const cudaError_t error = kernel_of(function, kernel)) return finish(error);
  CUlaunchConfig driver_config{};
  driver_config.gridDimX = config->gridDim.x;
  driver_config.gridDimY = config->gridDim.y;
  driver_config.gridDimZ = config->gridDim.z;
  driver_config.blockDimX = config->blockDim.x;
  driver_config.blockDimY = config->blockDim.y;
  driver_config.blockDimZ = config->blockDim.z;
  driver_config.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
  driver_config.hStream = config->stream;
  driver_config.attrs = as<CUlaunchAttribute*>(config->attrs);
  driver_config.numAttrs = config->numAttrs;
  return finish(driver_call<row::cudaLaunchKernelExC, form>(&driver_config, as_function(kernel), arguments, nullptr));
}

}  // namespace simgpu::runtime
