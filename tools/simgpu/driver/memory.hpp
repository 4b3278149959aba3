// Allocation and release of everything that belongs to a context. Thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tools/simgpu/driver/address_space.hpp"

namespace simgpu {

// Attributes and counters of a memory pool; guarded by memory_mutex().
struct Pool {
  // A block that was freed and keeps its chunk.
  struct Cached {
    std::uintptr_t base = 0;
    Chunk* chunk = nullptr;
    std::uint64_t stream = 0;  // id of the stream that freed it
  };

  int device = 0;
  int follow_event_dependencies = 1, allow_opportunistic = 1, allow_internal_dependencies = 1;
  std::uint64_t release_threshold = 0;
  std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
  AccessTable access{};  // of other devices
  std::vector<Cached> cached;
};

// Device memory that belongs to the context.
CUresult allocate_device(Context& context, std::size_t size, CUdeviceptr& address);
// Device memory that belongs to the pool. When memory is short pending frees of the stream's context are waited for.
CUresult allocate_from_pool(const Stream& stream, Pool& pool, std::size_t size, CUdeviceptr& address);
// Gives back what the pool keeps, until it holds at most `keep` bytes. Under memory_mutex().
void trim_pool(Pool& pool, std::uint64_t keep);
// Visits all pools, under memory_mutex(); in pool_api.cpp.
void for_each_pool(const std::function<void(Pool&)>& visit);
// What a synchronisation does to all pools: down to their thresholds.
void trim_pools_to_thresholds();

// cuMemFree: waits for the owning context, then frees device or managed memory.
CUresult free_device(Context& current, CUdeviceptr address);
// cuMemFreeAsync: frees when the stream gets there.
CUresult free_in_stream(const StreamRef& stream, CUdeviceptr address);

// Host memory that the driver owns (pinned or managed).
CUresult allocate_host(Context& context, std::size_t size, RangeKind kind, unsigned flags, std::uintptr_t& address);

// cuMemFreeHost: waits for the owning context, then frees pinned memory.
CUresult free_host(void* pointer);

void free_memory_of(const Context& context);

// Whether kernels of the context may touch the range (nullptr: no memory): by the mapping's access list, or by home, enabled
// peers and the pool's access list. Under memory_mutex().
bool may_touch(const Range* range, const Context& context, bool write);

// A copy of the range that contains the address.
std::optional<Range> look_up(CUdeviceptr address);
inline std::optional<Range> look_up(const void* address) { return look_up(reinterpret_cast<CUdeviceptr>(address)); }

}  // namespace simgpu
