// Driver entry points for programs that ask the runtime for them, and code loaded at run time
// (cudaLibrary_t).
#include "tools/simgpu/runtime/calls.hpp"
#include "tools/simgpu/runtime/registration.hpp"

namespace simgpu::runtime {
namespace {

// Asked through the pointer that cuGetProcAddress gave for itself, so that whoever replaced it sees the
// question.
cudaError_t entry_point(const char* name, void** pointer, unsigned version, unsigned long long flags,
                        Form form, cudaDriverEntryPointQueryResult* status) {
  if (name == nullptr || pointer == nullptr) return finish(cudaErrorInvalidValue);
  if (const cudaError_t error = driver_ready()) return finish(error);
  if (flags == cudaEnableDefault && form == Form::per_thread) flags = cudaEnablePerThreadDefaultStream;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  *pointer = nullptr;
  const CUresult result = proc_address()(name, pointer, static_cast<int>(version), flags, &found);
  if (result != CUDA_SUCCESS) *pointer = nullptr;
  if (status != nullptr) *status = as<cudaDriverEntryPointQueryResult>(found);
  // A name that does not exist is an answer, not an error.
  return result == CUDA_ERROR_NOT_FOUND ? cudaSuccess : finish(result);
}

}  // namespace

SIMGPU_BOTH_FORMS(cudaGetDriverEntryPointByVersion, _ptsz,
                  (const char* name, void** pointer, unsigned int version, unsigned long long flags,
                   cudaDriverEntryPointQueryResult* status),
                  (name, pointer, version, flags, status)) {
  return entry_point(name, pointer, version, flags, form, status);
}

SIMGPU_BOTH_FORMS(cudaGetDriverEntryPoint, _ptsz,
                  (const char* name, void** pointer, unsigned long long flags,
                   cudaDriverEntryPointQueryResult* status),
                  (name, pointer, flags, status)) {
  return entry_point(name, pointer, CUDART_VERSION, flags, form, status);
}

SIMGPU_API cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code,
                                           cudaJitOption* jit_options, void** jit_values,
                                           unsigned int jit_count, cudaLibraryOption* options, void** values,
                                           unsigned int count) {
  return direct<row::cudaLibraryLoadData>(as<CUlibrary*>(library), code, as<CUjit_option*>(jit_options),
                                          jit_values, jit_count, as<CUlibraryOption*>(options), values,
                                          count);
}
SIMGPU_API cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return direct<row::cudaLibraryUnload>(as<CUlibrary>(library));
}
SIMGPU_API cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  if (kernel == nullptr) return finish(cudaErrorInvalidValue);
  const cudaError_t error =
      direct<row::cudaLibraryGetKernel>(as<CUkernel*>(kernel), as<CUlibrary>(library), name);
  if (error == cudaSuccess) remember_kernel(as<CUkernel>(*kernel));
  return error;
}
SIMGPU_API cudaError_t cudaLibraryGetGlobal(void** pointer, size_t* size, cudaLibrary_t library,
                                            const char* name) {
  return direct<row::cudaLibraryGetGlobal>(as<CUdeviceptr*>(pointer), size, as<CUlibrary>(library), name);
}
SIMGPU_API cudaError_t cudaLibraryGetKernelCount(unsigned int* count, cudaLibrary_t library) {
  return direct<row::cudaLibraryGetKernelCount>(count, as<CUlibrary>(library));
}

}  // namespace simgpu::runtime
