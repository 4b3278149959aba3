// What the driver tells about a pointer.
#include "impl.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/memory.hpp"
#include "tools/simgpu/driver/process.hpp"

namespace simgpu {
namespace {

template <class T>
CUresult answer(void* data, T value) {
  *static_cast<T*>(data) = value;
  return CUDA_SUCCESS;
}

CUmemorytype memory_type(const Range& range) { return range.on_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE; }

CUresult known(void* data, CUpointer_attribute attribute, CUdeviceptr address, const Range& range) {
  const bool mapping = range.kind == RangeKind::mapping;
  const bool host_visible = range.on_host() || range.kind == RangeKind::managed;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      answer<CUcontext>(data, handle_of(range.context));
      return range.context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;  // mappings and pool memory have none
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return answer<unsigned>(data, memory_type(range));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return answer<CUdeviceptr>(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      answer<void*>(data, host_visible ? reinterpret_cast<void*>(address) : nullptr);
      return host_visible ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return answer<unsigned>(data, range.sync_memops);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return answer<unsigned long long>(data, range.buffer_id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return answer<unsigned>(data, range.kind == RangeKind::managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return answer<int>(data, range.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return answer<unsigned>(data, !range.pool && (range.kind == RangeKind::device || range.kind == RangeKind::slab_block));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return answer<CUdeviceptr>(data, range.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return answer<std::size_t>(data, range.size);
    case CU_POINTER_ATTRIBUTE_MAPPED: return answer<unsigned>(data, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return answer<unsigned long long>(data, mapping ? range.chunk->info.handle_types : 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return answer<unsigned>(data, mapping ? range.chunk->info.rdma_capable : range.kind != RangeKind::managed);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: {
      const Context* const context = current_context();
      const int device = context ? context->device : range.device;
      if (!mapping || device < 0) return answer<int>(data, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
      return answer<int>(data, range.access[static_cast<std::size_t>(device)]);
    }
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return answer<CUmemoryPool>(data, reinterpret_cast<CUmemoryPool>(range.pool));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return answer<std::size_t>(data, range.size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return answer<CUdeviceptr>(data, range.base);
    default: return CUDA_ERROR_INVALID_VALUE;  // unknown, and P2P_TOKENS
  }
}

// For memory that isn't CUDA's the plural form succeeds with "nothing", the singular one doesn't.
void unknown(void* data, CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: answer<int>(data, -2); break;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: answer<std::uint64_t>(data, 0); break;
    default: answer<unsigned>(data, 0);
  }
}

}  // namespace

namespace impl {

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (!data) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(memory_mutex());
  const Range* const range = address_space().find(ptr);
  return range ? known(data, attribute, ptr, *range) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr ptr) {
  if (!attributes || !data) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(memory_mutex());
  const Range* const range = address_space().find(ptr);
  for (unsigned i = 0; i < count; ++i) {
    if (!data[i] || attributes[i] < CU_POINTER_ATTRIBUTE_CONTEXT) return CUDA_ERROR_INVALID_VALUE;
    unknown(data[i], attributes[i]);
    if (range) known(data[i], attributes[i], ptr, *range);
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(memory_mutex());
  Range* const range = address_space().find(ptr);
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  if (range->kind == RangeKind::mapping || range->pool) return CUDA_ERROR_NOT_SUPPORTED;
  range->sync_memops = *static_cast<const unsigned*>(value) != 0;
  return CUDA_SUCCESS;
}

}  // namespace impl
}  // namespace simgpu
