// Virtual memory management: reservations, chunks, mappings, rights, sharing.
#include <sys/mman.h>

#include <bit>
#include <cstdio>

#include "impl.hpp"
#include "tools/simgpu/driver/address_space.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/guard.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/memory.hpp"
#include "tools/simgpu/driver/process.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {
namespace {

CUresult vmm_available() { return control().profile().vmm ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED; }

bool granular(std::uint64_t value) { return value % kGranularity == 0; }

bool host_location(CUmemLocationType type) {
  return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

// Checks what an allocation asks for and says where its memory is.
CUresult place_for(const CUmemAllocationProp& prop, std::uint32_t& place) {
  if (prop.type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  constexpr int kKnownHandles = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if ((static_cast<int>(prop.requestedHandleTypes) & ~kKnownHandles) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  switch (prop.location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      if (!valid_device(prop.location.id)) return CUDA_ERROR_INVALID_DEVICE;
      place = place_of(prop.location.id);
      return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:  // can't be shared
      if (!settings().host_numa) return CUDA_ERROR_NOT_SUPPORTED;
      place = kHostPlace;
      return prop.requestedHandleTypes == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:  // one node
      if (!settings().host_numa) return CUDA_ERROR_NOT_SUPPORTED;
      place = kHostPlace;
      return prop.location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// Index into an AccessTable, or -1. The id of a host location is ignored.
int access_index(const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return valid_device(location.id) ? location.id : -1;
  return host_location(location.type) ? kHostAccess : -1;
}

// The processor's page tables know one right per page: what any device or the host may do; with SIM_PROTECT=1 only the host.
bool apply_rights(const Range& range) {
  unsigned any = range.access[kHostAccess];
  for (const std::uint8_t rights : range.access) any |= settings().protect ? 0u : rights;
  const int protection = any & CU_MEM_ACCESS_FLAGS_PROT_READWRITE & ~CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ | PROT_WRITE
                         : any != 0                                                                ? PROT_READ
                                                                                                   : PROT_NONE;
  return address_space().set_protection(range.base, protection);
}

CUmemAllocationProp properties_of(const Chunk& chunk) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(chunk.info.handle_types);
  prop.location.type = static_cast<CUmemLocationType>(chunk.info.location_type);
  prop.location.id = chunk.info.place == kHostPlace ? 0 : ordinal_of(chunk.info.place);
  prop.allocFlags.gpuDirectRDMACapable = chunk.info.rdma_capable;
  return prop;
}

CUresult wrong(const char* kind, std::uint64_t address_or_handle) {
  char detail[32];
  std::snprintf(detail, sizeof detail, "0x%llx", static_cast<unsigned long long>(address_or_handle));
  misuse(kind, detail);
  return CUDA_ERROR_INVALID_VALUE;
}

// The mapping that begins at `base`, if the mappings from there on cover the range exactly.
bool covered_by_whole_mappings(std::uintptr_t base, std::uintptr_t end) {
  for (std::uintptr_t at = base; at < end;) {
    const Range* const range = address_space().find_base(at);
    if (!range || range->kind != RangeKind::mapping || range->end() > end) return false;
    at = range->end();
  }
  return true;
}

}  // namespace

namespace impl {

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop, CUmemAllocationGranularity_flags) {
  if (const CUresult result = vmm_available()) return result;
  if (!granularity || !prop) return CUDA_ERROR_INVALID_VALUE;
  std::uint32_t place = 0;
  if (const CUresult result = place_for(*prop, place)) return result;
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags) {
  if (const CUresult result = vmm_available()) return result;
  const bool alignment_valid = alignment == 0 || std::has_single_bit(alignment);
  if (!ptr || size == 0 || !granular(size) || !alignment_valid || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(memory_mutex());
  const std::uintptr_t base = address_space().reserve(size, alignment < kGranularity ? kGranularity : alignment, addr);
  if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
  *ptr = base;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  const std::lock_guard lock(memory_mutex());
  return address_space().release(ptr, size) ? CUDA_SUCCESS : wrong("cuMemAddressFree of what is not a free reservation", ptr);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  if (const CUresult result = vmm_available()) return result;
  if (!handle || !prop || size == 0 || !granular(size) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  ChunkInfo info;
  if (const CUresult result = place_for(*prop, info.place)) return result;
  if (settings().vmm_needs_context && info.place != kHostPlace && !device_has_context(prop->location.id)) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  info.size = size;
  info.handle_types = static_cast<std::uint32_t>(prop->requestedHandleTypes);
  info.location_type = static_cast<std::uint32_t>(prop->location.type);
  info.rdma_capable = prop->allocFlags.gpuDirectRDMACapable != 0;
  sleep_micros(settings().latency.create);
  const std::lock_guard lock(memory_mutex());
  Chunk* chunk = nullptr;
  CUresult result = chunks().create(info, chunk);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    blocks().trim();
    result = chunks().create(info, chunk);
  }
  if (result == CUDA_SUCCESS) *handle = chunks().retain(*chunk);
  return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(memory_mutex());
  Chunk* const chunk = chunks().find(handle);
  if (!chunk) return wrong("release of a handle that is not there", handle);
  chunks().release(*chunk);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags) {
  if (ptr == 0 || size == 0 || !granular(ptr) || !granular(size) || offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  sleep_micros(settings().latency.map);
  const std::lock_guard lock(memory_mutex());
  Chunk* const chunk = chunks().find(handle);
  AddressSpace& space = address_space();
  if (!chunk || size != chunk->info.size || size > UINTPTR_MAX - ptr) return CUDA_ERROR_INVALID_VALUE;
  if (!space.reserved(ptr, ptr + size) || space.first_overlap(ptr, ptr + size)) {
    return wrong("cuMemMap onto what is not an empty reservation", ptr);
  }
  if (!control().files().map(chunk->info.place, chunk->info.offset, ptr, size)) {
    AddressSpace::blank(ptr, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  space.add_area(ptr, size, PROT_NONE);
  chunks().add_mapping(*chunk);
  Range range;
  range.base = ptr;
  range.size = size;
  range.kind = RangeKind::mapping;
  range.device = ordinal_of(chunk->info.place);
  range.chunk = chunk;
  space.add(range);
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  if (ptr == 0 || size == 0 || !granular(ptr) || !granular(size) || size > UINTPTR_MAX - ptr) return CUDA_ERROR_INVALID_VALUE;
  sleep_micros(settings().latency.unmap);
  std::unique_lock lock(memory_mutex());
  AddressSpace& space = address_space();
  space.wait_untouched(lock, ptr, ptr + size, "cuMemUnmap");
  if (!covered_by_whole_mappings(ptr, ptr + size)) return wrong("cuMemUnmap of what is not whole mappings", ptr);
  for (std::uintptr_t at = ptr; at < ptr + size;) {
    const Range range = *space.find_base(at);
    AddressSpace::blank(range.base, range.size);
    space.remove_area(range.base);
    space.remove(range.base);
    chunks().remove_mapping(*range.chunk);
    at = range.end();
  }
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
  if (ptr == 0 || size == 0 || !granular(ptr) || !granular(size) || !desc || count == 0) return CUDA_ERROR_INVALID_VALUE;
  sleep_micros(settings().latency.access);
  std::unique_lock lock(memory_mutex());
  if (!covered_by_whole_mappings(ptr, ptr + size)) return wrong("cuMemSetAccess of what is not whole mappings", ptr);
  for (std::size_t i = 0; i < count; ++i) {
    const auto rights = desc[i].flags;
    const bool rights_valid = rights == CU_MEM_ACCESS_FLAGS_PROT_NONE || rights == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                              rights == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (!rights_valid) return CUDA_ERROR_INVALID_VALUE;
    const int index = access_index(desc[i].location);
    if (index < 0) return CUDA_ERROR_INVALID_DEVICE;
    for (std::uintptr_t at = ptr; index == kHostAccess && at < ptr + size;) {
      const Range& range = *address_space().find_base(at);
      if (range.chunk->info.place != kHostPlace) return CUDA_ERROR_INVALID_VALUE;  // the host can't reach device memory
      at = range.end();
    }
  }
  for (std::uintptr_t at = ptr; at < ptr + size;) {
    Range& range = *address_space().find_base(at);
    for (std::size_t i = 0; i < count; ++i) {
      range.access[static_cast<std::size_t>(access_index(desc[i].location))] = static_cast<std::uint8_t>(desc[i].flags);
    }
    for (KernelRun* const run : kernel_runs()) {
      if (!may_touch(&range, run->context(), false) && run->lose(range.base, range.end())) {
        misuse("access withdrawn while a kernel uses the memory", "cuMemSetAccess");
      }
    }
    if (!apply_rights(range)) return CUDA_ERROR_OPERATING_SYSTEM;
    at = range.end();
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  if (!flags || !location) return CUDA_ERROR_INVALID_VALUE;
  const int index = access_index(*location);
  if (index < 0) return CUDA_ERROR_INVALID_DEVICE;
  const std::lock_guard lock(memory_mutex());
  const Range* const range = address_space().find(ptr);
  if (!range || range->kind != RangeKind::mapping) return CUDA_ERROR_INVALID_VALUE;
  *flags = range->access[static_cast<std::size_t>(index)];
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags) {
  if (!shareable || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const std::lock_guard lock(memory_mutex());
  const Chunk* const chunk = chunks().find(handle);
  if (!chunk || (chunk->info.handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0) return CUDA_ERROR_INVALID_VALUE;
  // Whether a genuine driver exports what it imported is not known: the cautious answer.
  if (chunk->imported) return CUDA_ERROR_INVALID_VALUE;
  const int fd = control().export_token(chunk->info.name);
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(shareable) = fd;
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable, CUmemAllocationHandleType type) {
  if (const CUresult result = vmm_available()) return result;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  ChunkName name;
  const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
  if (!control().read_token(fd, name)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(memory_mutex());
  Chunk* chunk = nullptr;
  if (const CUresult result = chunks().adopt(name, chunk)) return result;
  if (chunk->info.place != kHostPlace && ordinal_of(chunk->info.place) < 0) {  // on a device that isn't visible here
    chunks().discard_if_unused(*chunk);
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *handle = chunks().retain(*chunk);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(memory_mutex());
  const Chunk* const chunk = chunks().find(handle);
  if (!prop || !chunk) return CUDA_ERROR_INVALID_VALUE;
  *prop = properties_of(*chunk);
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  const std::lock_guard lock(memory_mutex());
  const Range* const range = address_space().find(reinterpret_cast<std::uintptr_t>(addr));
  if (!handle || !range || range->kind != RangeKind::mapping) return CUDA_ERROR_INVALID_VALUE;  // cuMemAlloc memory too
  *handle = chunks().retain(*range->chunk);
  return CUDA_SUCCESS;
}

}  // namespace impl
}  // namespace simgpu
