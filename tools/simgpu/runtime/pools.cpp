// The stream-ordered allocator and its pools.
#include "tools/simgpu/runtime/calls.hpp"

namespace simgpu::runtime {

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));

SIMGPU_BOTH_FORMS(cudaMallocAsync, _ptsz, (void** pointer, size_t size, cudaStream_t stream), (pointer, size, stream)) {
  return direct<row::cudaMallocAsync, form>(as<CUdeviceptr*>(pointer), size, stream);
}

SIMGPU_BOTH_FORMS(cudaFreeAsync, _ptsz, (void* pointer, cudaStream_t stream), (pointer, stream)) {
  return direct<row::cudaFreeAsync, form>(address(pointer), stream);
}

SIMGPU_BOTH_FORMS(cudaMallocFromPoolAsync, _ptsz, (void** pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream),
                  (pointer, size, pool, stream)) {
  return direct<row::cudaMallocFromPoolAsync, form>(as<CUdeviceptr*>(pointer), size, pool, stream);
}

SIMGPU_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return direct<row::cudaDeviceGetDefaultMemPool>(pool, device);
}
SIMGPU_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return direct<row::cudaDeviceGetMemPool>(pool, device);
}
SIMGPU_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return direct<row::cudaDeviceSetMemPool>(device, pool);
}
SIMGPU_API cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return direct<row::cudaMemPoolCreate>(pool, as<const CUmemPoolProps*>(properties));
}
SIMGPU_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return direct<row::cudaMemPoolDestroy>(pool); }
SIMGPU_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) { return direct<row::cudaMemPoolTrimTo>(pool, keep); }
SIMGPU_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return direct<row::cudaMemPoolSetAttribute>(pool, as<CUmemPool_attribute>(attribute), value);
}
SIMGPU_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return direct<row::cudaMemPoolGetAttribute>(pool, as<CUmemPool_attribute>(attribute), value);
}
SIMGPU_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access, size_t count) {
  return direct<row::cudaMemPoolSetAccess>(pool, as<const CUmemAccessDesc*>(access), count);
}
SIMGPU_API cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return direct<row::cudaMemPoolGetAccess>(as<CUmemAccess_flags*>(flags), pool, as<CUmemLocation*>(location));
}

}  // namespace simgpu::runtime
