// The stream-ordered allocator. Memory is backed at the call; a free takes effect when the stream reaches it, and the pool
// keeps the block until a synchronisation trims it to its threshold. Blocks are reused only after that: what a genuine driver
// may hand out earlier (in the same stream, or behind a wait that it inserts) is not.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "impl.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/memory.hpp"
#include "tools/simgpu/driver/process.hpp"
#include "tools/simgpu/driver/registry.hpp"

namespace simgpu {
namespace {

struct DevicePools {
  std::array<std::shared_ptr<Pool>, kMaxDevices> standard;
  std::array<Pool*, kMaxDevices> current{};
  std::vector<std::shared_ptr<Pool>> all;  // also destroyed ones: blocks that are still out name them

  DevicePools() {
    for (int device = 0; device < kMaxDevices; ++device) {
      auto pool = std::make_shared<Pool>();
      pool->device = device;
      registry<Pool>().add(pool);
      all.push_back(pool);
      current[static_cast<std::size_t>(device)] = pool.get();
      standard[static_cast<std::size_t>(device)] = std::move(pool);
    }
  }
};

DevicePools& device_pools() {
  static DevicePools* const instance = new DevicePools;
  return *instance;
}

CUmemoryPool handle_of(Pool* pool) { return reinterpret_cast<CUmemoryPool>(pool); }

std::shared_ptr<Pool> find_pool(CUmemoryPool handle) {
  device_pools();  // registers the default ones
  return registry<Pool>().find(handle);
}

CUresult allocate(CUdeviceptr* dptr, std::size_t size, Pool& pool, CUstream handle) {
  if (!dptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  StreamRef stream;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  if (is_capturing(*stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;  // graph memory nodes don't exist here
  return allocate_from_pool(*stream, pool, size, *dptr);
}

}  // namespace

void for_each_pool(const std::function<void(Pool&)>& visit) {
  for (const auto& pool : device_pools().all) visit(*pool);
}

namespace impl {

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = handle_of(device_pools().standard[static_cast<std::size_t>(device)].get());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  const std::lock_guard lock(memory_mutex());
  *pool = handle_of(device_pools().current[static_cast<std::size_t>(device)]);
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  const auto pool = find_pool(handle);
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!pool || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(memory_mutex());
  device_pools().current[static_cast<std::size_t>(device)] = pool.get();
  return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* props) {
  if (!handle || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || props->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return CUDA_ERROR_NOT_SUPPORTED;  // host pools and pools to share
  }
  if (!valid_device(props->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  auto pool = std::make_shared<Pool>();
  pool->device = props->location.id;
  *handle = handle_of(pool.get());
  {
    const std::lock_guard lock(memory_mutex());
    device_pools().all.push_back(pool);
  }
  registry<Pool>().add(std::move(pool));
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  const auto pool = find_pool(handle);
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  const auto device = static_cast<std::size_t>(pool->device);
  const std::lock_guard lock(memory_mutex());
  const auto standard = device_pools().standard[device];
  if (pool == standard) return CUDA_ERROR_INVALID_VALUE;
  if (device_pools().current[device] == pool.get()) device_pools().current[device] = standard.get();
  pool->release_threshold = 0;
  trim_pool(*pool, 0);
  registry<Pool>().take(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  const auto pool = find_pool(handle);
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(memory_mutex());
  trim_pool(*pool, keep);
  return CUDA_SUCCESS;
}

// The pool's own device always has access.
CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* list, size_t count) {
  const auto pool = find_pool(handle);
  if (!pool || !list || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const bool device = list[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE && valid_device(list[i].location.id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    const bool revokes_own = list[i].location.id == pool->device && list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const bool known = list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (revokes_own || !known) return CUDA_ERROR_INVALID_VALUE;
  }
  const std::lock_guard lock(memory_mutex());
  for (std::size_t i = 0; i < count; ++i) {
    pool->access[static_cast<std::size_t>(list[i].location.id)] = static_cast<std::uint8_t>(list[i].flags);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  const auto pool = find_pool(handle);
  if (!pool || !flags || !location) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || !valid_device(location->id)) return CUDA_ERROR_INVALID_DEVICE;
  const std::lock_guard lock(memory_mutex());
  *flags = location->id == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                        : static_cast<CUmemAccess_flags>(pool->access[static_cast<std::size_t>(location->id)]);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const auto pool = find_pool(handle);
  if (!pool || !value) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(memory_mutex());
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      pool->follow_event_dependencies = *static_cast<int*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: pool->allow_opportunistic = *static_cast<int*>(value); return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->allow_internal_dependencies = *static_cast<int*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->release_threshold = *static_cast<cuuint64_t*>(value); return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;  // it can only be reset
      if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) pool->used_high = pool->used;
      if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) pool->reserved_high = pool->reserved;
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const auto pool = find_pool(handle);
  if (!pool || !value) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(memory_mutex());
  const auto flag = [&](int stored) { *static_cast<int*>(value) = stored; };
  const auto bytes = [&](std::uint64_t stored) { *static_cast<cuuint64_t*>(value) = stored; };
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: flag(pool->follow_event_dependencies); break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: flag(pool->allow_opportunistic); break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: flag(pool->allow_internal_dependencies); break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: bytes(pool->release_threshold); break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: bytes(pool->reserved); break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: bytes(pool->used); break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: bytes(pool->reserved_high); break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: bytes(pool->used_high); break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t size, CUstream stream) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  StreamRef resolved;
  if (const CUresult result = resolve_stream(stream, resolved)) return result;
  Pool* pool = nullptr;
  {
    const std::lock_guard lock(memory_mutex());
    pool = device_pools().current[static_cast<std::size_t>(resolved->context.device)];
  }
  return allocate(dptr, size, *pool, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t size, CUmemoryPool handle, CUstream stream) {
  const auto pool = find_pool(handle);
  return pool ? allocate(dptr, size, *pool, stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream handle) {
  StreamRef stream;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  if (dptr == 0 || is_capturing(*stream)) return CUDA_ERROR_INVALID_VALUE;  // a capture may free graph memory only
  return free_in_stream(stream, dptr);
}

}  // namespace impl
}  // namespace simgpu
