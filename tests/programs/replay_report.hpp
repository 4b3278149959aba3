// What replay counts, and how it prints it: one "name value" per line.
#pragma once

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <vector>

// Times of one kind of call, in nanoseconds.
class CallTimes {
 public:
  template <class Call>
  auto measure(Call call) {
    const auto start = std::chrono::steady_clock::now();
    struct Stop {
      CallTimes& times;
      std::chrono::steady_clock::time_point start;
      ~Stop() {
        const auto span = std::chrono::steady_clock::now() - start;
        times.samples_.push_back(
            static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(span).count()));
      }
    } stop{*this, start};
    return call();
  }

  std::size_t count() const { return samples_.size(); }

  void print(const char* name) {
    std::sort(samples_.begin(), samples_.end());
    std::uint64_t sum = 0;
    for (const std::uint64_t sample : samples_) sum += sample;
    const std::uint64_t mean = samples_.empty() ? 0 : sum / samples_.size();
    std::printf("%s-ns mean %" PRIu64 " p50 %" PRIu64 " p99 %" PRIu64 "\n", name, mean, quantile(50), quantile(99));
  }

 private:
  std::uint64_t quantile(std::size_t percent) const {
    return samples_.empty() ? 0 : samples_[(samples_.size() - 1) * percent / 100];
  }

  std::vector<std::uint64_t> samples_;
};

struct ReplayReport {
  std::uint64_t events = 0, failures = 0, live_bytes = 0, live_peak_bytes = 0, verified_bytes = 0;
  CallTimes malloc_times, free_times;

  void print() {
    std::printf("events %" PRIu64 "\n", events);
    std::printf("allocations %zu\n", malloc_times.count());
    std::printf("frees %zu\n", free_times.count());
    std::printf("failures %" PRIu64 "\n", failures);
    std::printf("live-peak-bytes %" PRIu64 "\n", live_peak_bytes);
    std::printf("verified-bytes %" PRIu64 "\n", verified_bytes);
    malloc_times.print("malloc");
    free_times.print("free");
    std::fflush(stdout);
  }
};
