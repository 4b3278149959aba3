#include "tools/simgpu/driver/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <vector>

#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/process.hpp"
#include "tools/simgpu/driver/stream.hpp"

namespace simgpu {
namespace {

// What all pools keep: lets a synchronisation end at once when there is nothing.
std::atomic<std::uint64_t> cached_bytes{0};

constexpr std::size_t kPage = 4096;
std::size_t whole_pages(std::size_t size) { return (size + kPage - 1) / kPage * kPage; }

bool freeable(const Range& range) {
  return !range.freeing &&
         (range.kind == RangeKind::device || range.kind == RangeKind::slab_block || range.kind == RangeKind::managed);
}

CUresult foreign_free(const char* call, CUdeviceptr address) {
  char text[64];
  std::snprintf(text, sizeof text, "%s of 0x%llx", call, static_cast<unsigned long long>(address));
  misuse("free of memory that was not allocated", text);
  return CUDA_ERROR_INVALID_VALUE;
}

// Frees a range whatever its kind. False when another thread has done so while this one waited; the lock is memory_mutex().
// `stream`: the id of the one in whose order it is freed, 0 for none.
bool free_range(std::unique_lock<std::mutex>& lock, const Range& found, const char* call, std::uint64_t stream = 0) {
  AddressSpace& space = address_space();
  const Range range = found;
  const std::uintptr_t base = range.base;
  const std::uintptr_t end = range.kind == RangeKind::device ? base + range.chunk->info.size : range.end();
  space.wait_untouched(lock, base, end, call);
  const Range* const still = space.find_base(base);
  if (!still || still->buffer_id != range.buffer_id) return false;
  if (range.pool) range.pool->used -= range.size;
  switch (range.kind) {
    case RangeKind::device:
      if (range.pool) {
        space.remove(base);
        range.pool->cached.push_back({base, range.chunk, stream});
        cached_bytes.fetch_add(range.chunk->info.size, std::memory_order_relaxed);
        break;
      }
      [[fallthrough]];
    case RangeKind::slab_block:
      if (range.pool) range.pool->reserved -= range.size;
      blocks().free(range);
      break;
    case RangeKind::pinned:
    case RangeKind::managed:
      if (range.managed.charged != 0) control().uncharge_managed(range.managed.charged_to, range.managed.charged);
      space.remove(base);
      ::munmap(reinterpret_cast<void*>(base), whole_pages(range.size));
      break;
    case RangeKind::registered:
    case RangeKind::ipc:
    case RangeKind::mapping: space.remove(base); break;
  }
  return true;
}

CUresult allocate(int device, std::size_t size, Context* context, Range*& range) {
  if (const CUresult result = blocks().allocate(device, place_of(device), size, range)) return result;
  range->context = context;
  return CUDA_SUCCESS;
}

// The smallest kept block that serves, for a request of at least half its size; nullptr: none.
Range* reuse(Pool& pool, std::uint64_t stream, std::size_t size) {
  auto best = pool.cached.end();
  for (auto it = pool.cached.begin(); it != pool.cached.end(); ++it) {
    const std::uint64_t bytes = it->chunk->info.size;
    if (bytes < size || bytes / 2 > size || (it->stream != stream && !pool.allow_opportunistic)) continue;
    if (best == pool.cached.end() || bytes < best->chunk->info.size) best = it;
  }
  if (best == pool.cached.end()) return nullptr;
  Range fresh;
  fresh.base = best->base;
  fresh.size = size;
  fresh.kind = RangeKind::device;
  fresh.device = pool.device;
  fresh.chunk = best->chunk;
  cached_bytes.fetch_sub(best->chunk->info.size, std::memory_order_relaxed);
  pool.cached.erase(best);
  return &address_space().add(fresh);
}

CUresult allocate_pooled(Pool& pool, std::uint64_t stream, std::size_t size, CUdeviceptr& address) {
  const std::lock_guard lock(memory_mutex());
  Range* range = size < kSlabLimit ? nullptr : reuse(pool, stream, size);
  if (!range) {
    if (const CUresult result = allocate(pool.device, size, nullptr, range)) return result;
    pool.reserved += range->kind == RangeKind::device ? range->chunk->info.size : size;
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  }
  range->pool = &pool;
  pool.used += size;
  pool.used_high = std::max(pool.used_high, pool.used);
  address = range->base;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult allocate_device(Context& context, std::size_t size, CUdeviceptr& address) {
  const std::lock_guard lock(memory_mutex());
  Range* range = nullptr;
  if (const CUresult result = allocate(context.device, size, &context, range)) return result;
  address = range->base;
  return CUDA_SUCCESS;
}

CUresult allocate_from_pool(const Stream& stream, Pool& pool, std::size_t size, CUdeviceptr& address) {
  const CUresult result = allocate_pooled(pool, stream.id, size, address);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  // Frees that are still in some stream's queue may be what is missing.
  if (const CUresult fault = stream.context.synchronize()) return fault;
  return allocate_pooled(pool, stream.id, size, address);
}

void trim_pool(Pool& pool, std::uint64_t keep) {
  while (!pool.cached.empty() && pool.reserved > keep) {
    const Pool::Cached block = pool.cached.front();
    pool.cached.erase(pool.cached.begin());
    pool.reserved -= block.chunk->info.size;
    cached_bytes.fetch_sub(block.chunk->info.size, std::memory_order_relaxed);
    blocks().unmap_whole(*block.chunk, block.base);
  }
}

void trim_pools_to_thresholds() {
  if (cached_bytes.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(memory_mutex());
  for_each_pool([](Pool& pool) { trim_pool(pool, pool.release_threshold); });
}

// Frees what lies at exactly `base` after all work of its context (or of `fallback`) is done.
template <class Predicate>
CUresult free_synchronised(std::uintptr_t base, Context* fallback, const char* call, Predicate expected) {
  Context* owner = nullptr;
  std::uint64_t buffer_id = 0;
  {
    const std::lock_guard lock(memory_mutex());
    const Range* const range = address_space().find_base(base);
    if (!range || !expected(*range)) return foreign_free(call, base);
    owner = range->context ? range->context : fallback;
    buffer_id = range->buffer_id;
  }
  if (const CUresult fault = owner->synchronize()) return fault;
  std::unique_lock lock(memory_mutex());
  const Range* const range = address_space().find_base(base);
  if (!range || range->buffer_id != buffer_id) return foreign_free(call, base);  // another thread was faster
  return free_range(lock, *range, call) ? CUDA_SUCCESS : foreign_free(call, base);
}

CUresult free_device(Context& current, CUdeviceptr address) {
  return free_synchronised(address, &current, "cuMemFree", freeable);
}

CUresult free_host(void* pointer) {
  const auto pinned = [](const Range& range) { return range.kind == RangeKind::pinned; };
  return free_synchronised(reinterpret_cast<std::uintptr_t>(pointer), nullptr, "cuMemFreeHost", pinned);
}

CUresult free_in_stream(const StreamRef& stream, CUdeviceptr address) {
  {
    const std::lock_guard lock(memory_mutex());
    Range* const range = address_space().find_base(address);
    if (!range || !freeable(*range) || range->kind == RangeKind::managed) return foreign_free("cuMemFreeAsync", address);
    range->freeing = true;
  }
  Operation operation;
  operation.always = true;  // a faulted context still gives its memory back
  operation.run = [address, id = stream->id] {
    std::unique_lock lock(memory_mutex());
    if (const Range* const range = address_space().find_base(address)) free_range(lock, *range, "cuMemFreeAsync", id);
    return CUDA_SUCCESS;
  };
  const CUresult result = submit(stream, std::move(operation));
  if (result == CUDA_SUCCESS) return result;
  const std::lock_guard lock(memory_mutex());
  if (Range* const range = address_space().find_base(address)) range->freeing = false;  // it is still the program's
  return result;
}

CUresult allocate_host(Context& context, std::size_t size, RangeKind kind, unsigned flags, std::uintptr_t& address) {
  if (size > SIZE_MAX - kPage) return CUDA_ERROR_OUT_OF_MEMORY;
  void* const memory =
      ::mmap(nullptr, whole_pages(size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  address = reinterpret_cast<std::uintptr_t>(memory);
  Range range;
  range.base = address;
  range.size = size;
  range.kind = kind;
  range.device = context.device;
  range.context = &context;
  range.flags = flags;
  const std::lock_guard lock(memory_mutex());
  address_space().add(range);
  return CUDA_SUCCESS;
}

void free_memory_of(const Context& context) {
  std::unique_lock lock(memory_mutex());
  std::vector<Range> ranges;
  for (const auto& [base, range] : address_space().ranges()) {
    if (range.context == &context && range.kind != RangeKind::ipc) ranges.push_back(range);
  }
  for (const Range& range : ranges) free_range(lock, range, "the end of the context");
}

bool may_touch(const Range* range, const Context& context, bool write) {
  if (!range) return false;
  const auto device = static_cast<std::size_t>(context.device);
  if (range->kind == RangeKind::mapping) {
    const auto wanted = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ;
    return (range->access[device] & wanted) == wanted;
  }
  if (range->device == context.device || range->on_host() || range->kind == RangeKind::managed) return true;
  if (range->pool) return range->pool->access[device] != 0;
  return context.has_peer(range->device);
}

std::optional<Range> look_up(CUdeviceptr address) {
  const std::lock_guard lock(memory_mutex());
  const Range* const range = address_space().find(address);
  return range ? std::optional(*range) : std::nullopt;
}

}  // namespace simgpu
