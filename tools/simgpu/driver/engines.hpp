// The engines of a card: one for each direction over its link, and its memory. A copy holds its engine for latency + bytes /
// bandwidth, whatever stream or process it belongs to; with SIM_TIME=1 the worker sleeps until then, so that ratios of times
// are a GPU's. A copy of pageable memory also goes through the process's staging, one after the other and slower than the link.
#pragma once

#include <atomic>
#include <cstdint>

namespace simgpu {

enum class Direction : int { to_device, to_host, inside };
inline constexpr int kDirections = 3;

// Books an engine that is free at `free_at` from `now` on: returns the end of the booking. All in nanoseconds of
// CLOCK_MONOTONIC. Lock-free, since `free_at` is shared by processes that may die.
inline std::int64_t book(std::atomic<std::int64_t>& free_at, std::int64_t now, std::int64_t duration) {
  std::int64_t before = free_at.load(std::memory_order_relaxed);
  for (;;) {
    const std::int64_t end = (before > now ? before : now) + duration;
    if (free_at.compare_exchange_weak(before, end, std::memory_order_relaxed)) return end;
  }
}

// Counts the bytes, and with SIM_TIME=1 makes the rest of its scope last as long as the engine takes.
class EngineUse {
 public:
  // `bytes` inside a device: read plus written.
  EngineUse(int device, Direction direction, std::uint64_t bytes, bool pageable = false);
  ~EngineUse();
  EngineUse(const EngineUse&) = delete;
  EngineUse& operator=(const EngineUse&) = delete;

 private:
  std::int64_t end_ = 0;  // 0: no time is kept
};

// With SIM_TIME=1 makes its scope last at least SIM_LAUNCH_US, or what set_launch_us() said since: a kernel's duration.
void set_launch_us(double microseconds);
class LaunchTime {
 public:
  LaunchTime();
  ~LaunchTime();
  LaunchTime(const LaunchTime&) = delete;
  LaunchTime& operator=(const LaunchTime&) = delete;

 private:
  std::int64_t end_ = 0;
};

// Sleeps to the microsecond: Linux rounds a thread's sleeps up by 50 us unless it is told otherwise.
void sleep_for_nanos(std::int64_t nanos);

// Bytes that this process has moved over the link.
std::uint64_t moved_bytes(Direction direction);

}  // namespace simgpu
