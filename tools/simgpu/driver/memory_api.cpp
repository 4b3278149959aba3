// Device, pinned and managed memory: allocation, release, queries about sizes.
#include <algorithm>

#include "impl.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/memory.hpp"
#include "tools/simgpu/driver/process.hpp"

namespace simgpu::impl {

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  {
    const std::lock_guard lock(memory_mutex());
    blocks().trim_spare();
  }
  const auto place = static_cast<int>(place_of(context->device));
  const std::uint64_t capacity = control().capacity(place);
  if (free) *free = capacity - std::min(capacity, control().used(place));
  if (total) *total = capacity;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t size) {
  if (!dptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  if (capture_forbids()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return allocate_device(*context, size, *dptr);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pitch, size_t width, size_t height, unsigned int element_size) {
  constexpr std::size_t kPitchAlignment = 512;
  const bool element_valid = element_size == 4 || element_size == 8 || element_size == 16;
  if (!dptr || !pitch || width == 0 || height == 0 || !element_valid) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t rounded = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  if (rounded < width || height > SIZE_MAX / rounded) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = impl::cuMemAlloc_v2(dptr, rounded * height);
  if (result == CUDA_SUCCESS) *pitch = rounded;
  return result;
}

CUresult cuMemFree_v2(CUdeviceptr dptr) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  if (dptr == 0) return CUDA_SUCCESS;
  if (capture_forbids()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return free_device(*context, dptr);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr dptr) {
  const auto range = look_up(dptr);
  if (!range) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = range->base;
  if (size) *size = range->size;
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void** pointer, size_t size, unsigned int flags) {
  constexpr unsigned kKnown = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (!pointer || size == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  if (capture_forbids()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::uintptr_t address = 0;
  // With unified addressing all pinned memory is mapped for the device, and flags say so.
  const CUresult result = allocate_host(*context, size, RangeKind::pinned, flags | CU_MEMHOSTALLOC_DEVICEMAP, address);
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
  return result;
}

CUresult cuMemAllocHost_v2(void** pointer, size_t size) { return impl::cuMemHostAlloc(pointer, size, 0); }

CUresult cuMemFreeHost(void* pointer) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  if (!pointer) return CUDA_SUCCESS;
  if (capture_forbids()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return free_host(pointer);
}

CUresult cuMemHostRegister_v2(void* pointer, size_t size, unsigned int flags) {
  if (!pointer || size == 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  Range range;
  range.base = reinterpret_cast<std::uintptr_t>(pointer);
  range.size = size;
  range.kind = RangeKind::registered;
  range.device = context->device;
  range.context = context;
  range.flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
  const std::lock_guard lock(memory_mutex());
  if (const Range* const other = address_space().first_overlap(range.base, range.end())) {
    return other->on_host() ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_ERROR_INVALID_VALUE;
  }
  address_space().add(range);
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void* pointer) {
  std::unique_lock lock(memory_mutex());
  const Range* const range = address_space().find_base(reinterpret_cast<std::uintptr_t>(pointer));
  if (!range || range->kind != RangeKind::registered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  address_space().wait_untouched(lock, range->base, range->end(), "cuMemHostUnregister");
  address_space().remove(reinterpret_cast<std::uintptr_t>(pointer));
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* dptr, void* pointer, unsigned int flags) {
  if (!dptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto range = look_up(pointer);
  if (!range || (range->kind != RangeKind::pinned && range->kind != RangeKind::registered)) return CUDA_ERROR_INVALID_VALUE;
  *dptr = reinterpret_cast<CUdeviceptr>(pointer);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* pointer) {
  const auto range = look_up(pointer);
  if (!flags || !range || (range->kind != RangeKind::pinned && range->kind != RangeKind::registered)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *flags = range->flags;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t size, unsigned int flags) {
  const bool flags_valid = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
  if (!dptr || size == 0 || !flags_valid) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  if (capture_forbids()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::uintptr_t address = 0;
  const CUresult result = allocate_host(*context, size, RangeKind::managed, flags, address);
  if (result == CUDA_SUCCESS) *dptr = address;
  return result;
}

}  // namespace simgpu::impl
