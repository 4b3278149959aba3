#include "tools/simgpu/driver/engines.hpp"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

#include "tools/simgpu/driver/process.hpp"
#include "tools/simgpu/driver/profiles.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {
namespace {

std::atomic<std::uint64_t> moved[kDirections];
constexpr double kInsideLatency = 2;  // microseconds; of a small copy or fill inside a device. Assumed.

std::atomic<std::int64_t>& launch_nanos() {
  static std::atomic<std::int64_t> nanos{static_cast<std::int64_t>(settings().launch_us * 1000)};
  return nanos;
}

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

constexpr std::int64_t kShortest = 5000;  // what a sleep takes at least: shorter waits are spun

void sleep_until(std::int64_t end) {
  std::int64_t left = end - now();
  if (left > kShortest) {
    const int slack = ::prctl(PR_GET_TIMERSLACK);
    ::prctl(PR_SET_TIMERSLACK, 1ul);
    const timespec time{end / 1'000'000'000, end % 1'000'000'000};
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
    }
    ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack > 0 ? slack : 0));
    return;
  }
  while (left > 0) left = end - now();
}

}  // namespace

EngineUse::EngineUse(int device, Direction direction, std::uint64_t bytes, bool pageable) {
  const int index = static_cast<int>(direction);
  moved[index].fetch_add(bytes, std::memory_order_relaxed);
  if (!settings().time) return;
  static std::atomic<std::int64_t> staging[kDirections];  // free at; of this process
  const Profile& profile = control().profile();
  const auto duration = [&](double latency_us, double bytes_per_second) {
    return static_cast<std::int64_t>((latency_us / 1e6 + static_cast<double>(bytes) / bytes_per_second) * 1e9);
  };
  const double link = profile.link.mib_per_second * (1 << 20);
  const double rate = direction == Direction::inside ? profile.memory_bytes_per_second() : link;
  const std::int64_t begin = now();
  const double latency_us = direction == Direction::inside ? kInsideLatency : profile.link.latency_us;
  end_ = book(control().engine(place_of(device), direction), begin, duration(latency_us, rate));
  if (!pageable) return;
  const double share = direction == Direction::to_device ? kPageableToDevice : kPageableToHost;
  end_ = std::max(end_, book(staging[index], begin, duration(profile.link.latency_us, link * share)));
}

EngineUse::~EngineUse() {
  if (end_ != 0) sleep_until(end_);
}

void set_launch_us(double microseconds) { launch_nanos().store(static_cast<std::int64_t>(microseconds * 1000)); }

LaunchTime::LaunchTime() {
  if (settings().time) end_ = now() + launch_nanos().load(std::memory_order_relaxed);
}

LaunchTime::~LaunchTime() {
  if (end_ != 0) sleep_until(end_);
}

void sleep_for_nanos(std::int64_t nanos) {
  if (nanos > 0) sleep_until(now() + nanos);
}

std::uint64_t moved_bytes(Direction direction) { return moved[static_cast<int>(direction)].load(std::memory_order_relaxed); }

}  // namespace simgpu
