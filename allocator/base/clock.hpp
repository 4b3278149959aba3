// The one source of time. What needs time takes a Clock, so that tests can turn the hands.
#pragma once

#include <concepts>
#include <ctime>

#include "allocator/base/units.hpp"

namespace vramd {

template <class C>
concept Clock = requires(const C& clock) {
  { clock.now() } -> std::same_as<Nanos>;
};

struct MonotonicClock {
  Nanos now() const {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return {static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec};
  }
};

}  // namespace vramd
