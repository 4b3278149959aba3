// Allocation, pinned and managed memory, pointer attributes.
#include <mutex>
#include <unordered_set>

#include "tools/simgpu/runtime/adapters.hpp"

namespace simgpu::runtime {
namespace {

struct StreamOrdered {
  std::mutex mutex;
  std::unordered_set<CUdeviceptr> pointers;
};

StreamOrdered& stream_ordered() {
  static auto* memory = new StreamOrdered;  // programs free memory in their static destructors too
  return *memory;
}

cudaError_t host_alloc(void** pointer, std::size_t size, unsigned flags) {
  if (pointer == nullptr) return finish(cudaErrorInvalidValue);
  if (size == 0) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  return direct<row::cudaHostAlloc>(pointer, size, flags);
}

}  // namespace

void remember_stream_ordered(CUdeviceptr pointer) {
  std::lock_guard lock(stream_ordered().mutex);
  stream_ordered().pointers.insert(pointer);
}

bool forget_stream_ordered(CUdeviceptr pointer) {
  std::lock_guard lock(stream_ordered().mutex);
  return stream_ordered().pointers.erase(pointer) == 1;
}

SIMGPU_API cudaError_t cudaMalloc(void** pointer, size_t size) {
  if (const cudaError_t error = context_ready()) return finish(error);
  if (pointer == nullptr) return finish(cudaErrorInvalidValue);
  if (size == 0) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  return finish(through<row::cudaMalloc>([&](auto entry) { return allocate(entry, as<CUdeviceptr*>(pointer), size); }));
}

SIMGPU_API cudaError_t cudaFree(void* pointer) {
  if (const cudaError_t error = context_ready()) return finish(error);
  if (pointer == nullptr) return cudaSuccess;
  return finish(through<row::cudaFree>([&](auto entry) { return release(entry, address(pointer)); }));
}

SIMGPU_API cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  constexpr unsigned kElement = 4;  // the driver wants the size of an access; it decides nothing but the refusal of others
  if (pointer == nullptr || pitch == nullptr) return finish(cudaErrorInvalidValue);
  if (width == 0 || height == 0) {
    *pointer = nullptr;
    *pitch = 0;
    return cudaSuccess;
  }
  return direct<row::cudaMallocPitch>(as<CUdeviceptr*>(pointer), pitch, width, height, kElement);
}

SIMGPU_API cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  if (pitched == nullptr) return finish(cudaErrorInvalidValue);
  *pitched = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&pitched->ptr, &pitched->pitch, extent.width, extent.height * extent.depth);
}

SIMGPU_API cudaError_t cudaMemGetInfo(size_t* free, size_t* total) { return direct<row::cudaMemGetInfo>(free, total); }

SIMGPU_API cudaError_t cudaMallocHost(void** pointer, size_t size) { return host_alloc(pointer, size, 0); }

SIMGPU_API cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned int flags) {
  return host_alloc(pointer, size, flags);
}

SIMGPU_API cudaError_t cudaFreeHost(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  return direct<row::cudaFreeHost>(pointer);
}

SIMGPU_API cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned int flags) {
  return direct<row::cudaHostRegister>(pointer, size, flags);
}

SIMGPU_API cudaError_t cudaHostUnregister(void* pointer) { return direct<row::cudaHostUnregister>(pointer); }

SIMGPU_API cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  return direct<row::cudaHostGetDevicePointer>(as<CUdeviceptr*>(device), host, flags);
}

SIMGPU_API cudaError_t cudaHostGetFlags(unsigned int* flags, void* host) { return direct<row::cudaHostGetFlags>(flags, host); }

SIMGPU_API cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned int flags) {
  return direct<row::cudaMallocManaged>(as<CUdeviceptr*>(pointer), size, flags);
}

SIMGPU_API cudaError_t cudaMemAdvise(const void* pointer, size_t size, cudaMemoryAdvise advice, cudaMemLocation location) {
  return direct<row::cudaMemAdvise>(address(pointer), size, as<CUmem_advise>(advice), as<CUmemLocation>(location));
}

SIMGPU_BOTH_FORMS(cudaMemPrefetchAsync, _ptsz,
                  (const void* pointer, size_t size, cudaMemLocation location, unsigned int flags, cudaStream_t stream),
                  (pointer, size, location, flags, stream)) {
  return direct<row::cudaMemPrefetchAsync, form>(address(pointer), size, as<CUmemLocation>(location), flags, stream);
}

SIMGPU_API cudaError_t cudaMemRangeGetAttribute(void* data, size_t size, cudaMemRangeAttribute attribute, const void* pointer,
                                                size_t count) {
  return direct<row::cudaMemRangeGetAttribute>(data, size, as<CUmem_range_attribute>(attribute), address(pointer), count);
}

SIMGPU_BOTH_FORMS(cudaStreamAttachMemAsync, _ptsz, (cudaStream_t stream, void* pointer, size_t length, unsigned int flags),
                  (stream, pointer, length, flags)) {
  return direct<row::cudaStreamAttachMemAsync, form>(stream, address(pointer), length, flags);
}

// Of a pointer that the driver does not know the plural query says type 0 and ordinal -2: host memory like
// any other.
SIMGPU_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return finish(cudaErrorInvalidValue);
  unsigned type = 0;
  unsigned managed = 0;
  void* device_pointer = nullptr;
  void* host_pointer = nullptr;
  int ordinal = -2;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* answers[] = {&type, &managed, &device_pointer, &host_pointer, &ordinal};
  const cudaError_t error = direct<row::cudaPointerGetAttributes>(5U, asked, answers, address(pointer));
  if (error != cudaSuccess) return error;
  *attributes = {};
  attributes->device = ordinal;
  attributes->devicePointer = device_pointer;
  attributes->hostPointer = host_pointer;
  if (managed != 0) {
    attributes->type = cudaMemoryTypeManaged;
  } else if (type == CU_MEMORYTYPE_HOST) {
    attributes->type = cudaMemoryTypeHost;
  } else if (type == CU_MEMORYTYPE_DEVICE) {
    attributes->type = cudaMemoryTypeDevice;
  } else {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->hostPointer = const_cast<void*>(pointer);
  }
  return cudaSuccess;
}

}  // namespace simgpu::runtime
