// Managed memory: hints, prefetches and what a range is told to be. All of it lies in the host's memory here; what was
// prefetched to a device is charged there while it has room, as pages that moved would be.
#include <algorithm>
#include <utility>

#include "impl.hpp"
#include "tools/simgpu/driver/address_space.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/memory.hpp"
#include "tools/simgpu/driver/process.hpp"
#include "tools/simgpu/driver/stream.hpp"

namespace simgpu {
namespace {

constexpr int kHost = -1, kNowhere = -2;

// The managed range that holds the whole span, or nullptr. Under memory_mutex().
Range* managed_range(CUdeviceptr address, std::size_t size) {
  Range* const range = address_space().find(address);
  const bool whole = range && range->kind == RangeKind::managed && size != 0 && size <= range->end() - address;
  return whole ? range : nullptr;
}

bool place_of_location(const CUmemLocation& location, int& place) {
  place = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : kHost;
  const bool host = location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                    location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
  return host || (location.type == CU_MEM_LOCATION_TYPE_DEVICE && valid_device(location.id));
}

// Moves the charge of a range: to a device as far as there is room, or to the host.
void move_charge(Range& range, int place) {
  Managed& managed = range.managed;
  managed.prefetched = place;
  if (managed.charged != 0) control().uncharge_managed(managed.charged_to, managed.charged);
  managed.charged = 0;
  managed.charged_to = kHost;
  if (place == kHost) return;
  managed.charged_to = static_cast<int>(place_of(place));
  managed.charged = control().charge_managed(managed.charged_to, range.size);
}

CUresult prefetch(CUdeviceptr address, std::size_t size, int place, CUstream handle) {
  StreamRef stream;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  {
    const std::lock_guard lock(memory_mutex());
    if (!managed_range(address, size)) return CUDA_ERROR_INVALID_VALUE;
  }
  Operation operation;
  operation.run = [=] {
    const std::lock_guard lock(memory_mutex());
    if (Range* const range = managed_range(address, size)) move_charge(*range, place);
    return CUDA_SUCCESS;
  };
  return submit(stream, std::move(operation));
}

CUresult advise(CUdeviceptr address, std::size_t size, CUmem_advise advice, int place) {
  const std::lock_guard lock(memory_mutex());
  Range* const range = managed_range(address, size);
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  Managed& managed = range->managed;
  const std::uint64_t bit = place >= 0 ? std::uint64_t{1} << place : 0;
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY: managed.read_mostly = true; return CUDA_SUCCESS;
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY: managed.read_mostly = false; return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: managed.preferred = place; return CUDA_SUCCESS;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: managed.preferred = kNowhere; return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_ACCESSED_BY: managed.accessed_by |= bit; return CUDA_SUCCESS;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY: managed.accessed_by &= ~bit; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult attribute_of(const Managed& managed, CUmem_range_attribute attribute, void* data, std::size_t size) {
  auto* const words = static_cast<int*>(data);
  if (!data || size < sizeof(int) || size % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: *words = managed.read_mostly; return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: *words = managed.preferred; return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: *words = managed.prefetched; return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
      std::fill_n(words, size / sizeof(int), kNowhere);
      std::size_t at = 0;
      for (int device = 0; device < kMaxDevices && at < size / sizeof(int); ++device) {
        if (managed.accessed_by >> device & 1) words[at++] = device;
      }
      return CUDA_SUCCESS;
    }
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// The batch forms name one location for each run of entries, by the index at which it begins.
template <class Each>
CUresult each_location(std::size_t count, const CUmemLocation* locations, const std::size_t* begins, std::size_t location_count,
                       Each each) {
  if (count == 0 || !locations || !begins || location_count == 0 || begins[0] != 0) return CUDA_ERROR_INVALID_VALUE;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (at + 1 < location_count && i >= begins[at + 1]) ++at;
    int place = kHost;
    if (!place_of_location(locations[at], place)) return CUDA_ERROR_INVALID_DEVICE;
    if (const CUresult result = each(i, place)) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

namespace impl {

CUresult cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice device) {
  if (device != CU_DEVICE_CPU && !valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  return advise(address, size, advice, device);
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation location) {
  int place = kHost;
  const bool with_location = advice != CU_MEM_ADVISE_SET_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
                             advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
  if (with_location && !place_of_location(location, place)) return CUDA_ERROR_INVALID_DEVICE;
  return advise(address, size, advice, place);
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice device, CUstream stream) {
  if (device != CU_DEVICE_CPU && !valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  return prefetch(address, size, device, stream);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location, unsigned int flags, CUstream stream) {
  int place = kHost;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!place_of_location(location, place)) return CUDA_ERROR_INVALID_DEVICE;
  return prefetch(address, size, place, stream);
}

CUresult cuMemRangeGetAttribute(void* data, size_t data_size, CUmem_range_attribute attribute, CUdeviceptr address,
                                size_t size) {
  const std::lock_guard lock(memory_mutex());
  const Range* const range = managed_range(address, size);
  return range ? attribute_of(range->managed, attribute, data, data_size) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRangeGetAttributes(void** data, size_t* data_sizes, CUmem_range_attribute* attributes, size_t count,
                                 CUdeviceptr address, size_t size) {
  if (!data || !data_sizes || !attributes || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (const CUresult result = impl::cuMemRangeGetAttribute(data[i], data_sizes[i], attributes[i], address, size))
      return result;
  }
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 13000
CUresult cuMemPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count, CUmemLocation* locations, size_t* begins,
                                 size_t location_count, unsigned long long flags, CUstream stream) {
  if (flags != 0 || !addresses || !sizes) return CUDA_ERROR_INVALID_VALUE;
  return each_location(count, locations, begins, location_count,
                       [&](std::size_t i, int place) { return prefetch(addresses[i], sizes[i], place, stream); });
}

// What is discarded has no contents any more: it may as well stay.
CUresult cuMemDiscardBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count, unsigned long long flags,
                                CUstream handle) {
  StreamRef stream;
  if (flags != 0 || count == 0 || !addresses || !sizes) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  const std::lock_guard lock(memory_mutex());
  for (std::size_t i = 0; i < count; ++i) {
    if (!managed_range(addresses[i], sizes[i])) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count, CUmemLocation* locations,
                                           size_t* begins, size_t location_count, unsigned long long flags, CUstream stream) {
  return impl::cuMemPrefetchBatchAsync(addresses, sizes, count, locations, begins, location_count, flags, stream);
}
#endif

}  // namespace impl
}  // namespace simgpu
