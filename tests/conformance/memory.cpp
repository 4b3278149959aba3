#include "tests/conformance/memory.hpp"

#include <sys/mman.h>

#include <cstring>

#include "tests/conformance/case.hpp"

namespace vramd::conformance {

int chosen_device = 0;

void start() { NEED(cuInit(0)); }

CUcontext primary() {
  start();
  CUcontext context = nullptr;
  NEED(cuDevicePrimaryCtxRetain(&context, chosen_device));
  NEED(cuCtxSetCurrent(context));
  return context;
}

int second_device() {
  int count = 0;
  NEED(cuDeviceGetCount(&count));
  if (count < 2) not_available("one device");
  return chosen_device == 0 ? 1 : 0;
}

int device_attribute(CUdevice_attribute attribute) {
  int value = 0;
  NEED(cuDeviceGetAttribute(&value, attribute, chosen_device));
  return value;
}

CUdeviceptr device_memory(std::size_t size) {
  CUdeviceptr address = 0;
  NEED(cuMemAlloc(&address, size));
  return address;
}

char* pinned_memory(std::size_t size) {
  void* pointer = nullptr;
  NEED(cuMemHostAlloc(&pointer, size, 0));
  return static_cast<char*>(pointer);
}

char* pageable_memory(std::size_t size) {
  void* const pointer = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need_that(pointer != MAP_FAILED, "mmap");
  return static_cast<char*>(pointer);
}

CUdeviceptr memory_of(Kind kind, std::size_t size) {
  switch (kind) {
    case Kind::device: return device_memory(size);
    case Kind::host_backed: {
      const std::size_t granule = granularity(host_prop());
      return map_new_host((size + granule - 1) / granule).address;
    }
    case Kind::pinned: return address_of(pinned_memory(size));
    default: return address_of(pageable_memory(size));
  }
}

CUmemAllocationProp device_prop(int handle_types) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = chosen_device;
  prop.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handle_types);
  return prop;
}

CUmemAllocationProp host_prop(int handle_types) {
  CUmemAllocationProp prop = device_prop(handle_types);
  int node = -1;
  if (cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, chosen_device) != CUDA_SUCCESS || node < 0) node = 0;
  prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  prop.location.id = node;
  return prop;
}

std::size_t granularity(const CUmemAllocationProp& prop) {
  std::size_t size = 0;
  const CUresult result = cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (result == CUDA_ERROR_NOT_SUPPORTED) not_available("virtual memory management is not supported");
  need(result, "cuMemGetAllocationGranularity");
  return size;
}

CUmemGenericAllocationHandle chunk(std::size_t size, const CUmemAllocationProp& prop) {
  CUmemGenericAllocationHandle handle = 0;
  NEED(cuMemCreate(&handle, size, &prop, 0));
  return handle;
}

// By a real creation: on some drivers the attribute cannot be asked although the feature is there.
CUmemGenericAllocationHandle host_chunk(std::size_t size, int handle_types) {
  const CUmemAllocationProp prop = host_prop(handle_types);
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = cuMemCreate(&handle, size, &prop, 0);
  const bool missing = result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED;
  if (missing) not_available("no chunks in host memory");
  need(result, "cuMemCreate(HOST_NUMA)");
  return handle;
}

CUdeviceptr reserve(std::size_t size) {
  CUdeviceptr address = 0;
  NEED(cuMemAddressReserve(&address, size, 0, 0, 0));
  return address;
}

CUmemAccessDesc device_access(CUmemAccess_flags flags) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = chosen_device;
  access.flags = flags;
  return access;
}

CUmemAccessDesc host_access() {
  CUmemAccessDesc access{};
  access.location = host_prop().location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

Parts parts(std::size_t granules) {
  primary();
  const CUmemAllocationProp prop = device_prop();
  const std::size_t granule = granularity(prop);
  return {granule, reserve(4 * granule), chunk(granules * granule, prop)};
}

void map(CUdeviceptr address, std::size_t size, CUmemGenericAllocationHandle handle) {
  const CUmemAccessDesc access = device_access();
  NEED(cuMemMap(address, size, 0, handle, 0));
  NEED(cuMemSetAccess(address, size, &access, 1));
}

void map_host(CUdeviceptr address, std::size_t size, CUmemGenericAllocationHandle handle) {
  const CUmemAccessDesc access[] = {device_access(), host_access()};
  NEED(cuMemMap(address, size, 0, handle, 0));
  NEED(cuMemSetAccess(address, size, access, 2));
}

Mapping map_new(std::size_t chunks) {
  const CUmemAllocationProp prop = device_prop();
  const std::size_t granule = granularity(prop);
  Mapping mapping{reserve(chunks * granule), chunks * granule, 0};
  for (std::size_t i = 0; i < chunks; ++i) {
    const CUmemGenericAllocationHandle handle = chunk(granule, prop);
    NEED(cuMemMap(mapping.address + i * granule, granule, 0, handle, 0));
    if (i == 0) mapping.handle = handle;
  }
  const CUmemAccessDesc access = device_access();
  NEED(cuMemSetAccess(mapping.address, mapping.size, &access, 1));
  return mapping;
}

Mapping map_new_host(std::size_t granules) {
  const std::size_t size = granules * granularity(host_prop());
  const Mapping mapping{reserve(size), size, host_chunk(size)};
  map_host(mapping.address, size, mapping.handle);
  return mapping;
}

void fill(CUdeviceptr address, unsigned char value, std::size_t size) {
  unsigned kind = 0;
  if (cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS) {  // not the driver's
    std::memset(pointer_to(address), value, size);
    return;
  }
  NEED(cuMemsetD8(address, value, size));
  NEED(cuCtxSynchronize());
}

bool holds(CUdeviceptr address, unsigned char value, std::size_t size) {
  char* const bytes = pageable_memory(size);
  NEED(cuMemcpy(address_of(bytes), address, size));
  const bool same = all_bytes(bytes, value, size);
  ::munmap(bytes, size);
  return same;
}

bool all_bytes(const void* bytes, unsigned char value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    if (static_cast<const volatile unsigned char*>(bytes)[i] != value) return false;
  }
  return true;
}

CUstream stream(unsigned flags) {
  CUstream handle = nullptr;
  NEED(cuStreamCreate(&handle, flags));
  return handle;
}

CUevent event(unsigned flags) {
  CUevent handle = nullptr;
  NEED(cuEventCreate(&handle, flags));
  return handle;
}

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  NEED(cuMemGetInfo(&free, &total));
  return free;
}

}  // namespace vramd::conformance
