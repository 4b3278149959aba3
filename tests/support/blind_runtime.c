/* A "CUDA runtime" whose calls succeed without any driver call: nothing that it submits passes a function that vramd hooks. */
#define RUNTIME_CALL(name)                                  \
  __attribute__((visibility("default"))) int name(void);    \
  int name(void) { return 0; }

RUNTIME_CALL(cudaRuntimeGetVersion)
RUNTIME_CALL(cudaDriverGetVersion)
RUNTIME_CALL(cudaMalloc)
RUNTIME_CALL(cudaMallocHost)
RUNTIME_CALL(cudaStreamCreateWithFlags)
RUNTIME_CALL(cudaDeviceSynchronize)
RUNTIME_CALL(cudaLibraryLoadData)
RUNTIME_CALL(cudaLibraryGetKernel)
RUNTIME_CALL(cudaLaunchKernel)
RUNTIME_CALL(cudaMemcpy)
RUNTIME_CALL(cudaMemcpyAsync)
RUNTIME_CALL(cudaMemset)
RUNTIME_CALL(cudaMemsetAsync)
