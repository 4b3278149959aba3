#include "tools/simgpu/driver/timeline.hpp"

#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <vector>

#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {

thread_local std::uint64_t timeline_stream = 0;

namespace {

constexpr std::size_t kMostEntries = 1u << 20;  // further ones are not kept

struct Entry {
  std::string label;
  std::uint64_t stream;
  int device;
  std::int64_t begin, end;  // nanoseconds of CLOCK_MONOTONIC
};

struct Timeline {
  std::mutex mutex;
  std::vector<Entry> entries;
};

Timeline& timeline() {
  static Timeline* const instance = new Timeline;
  return *instance;
}

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

CUresult perform_noted(const Work& work, Context& context) {
  if (settings().timeline_path.empty()) return work.perform(context);
  const std::int64_t begin = now();
  const CUresult result = work.perform(context);
  const std::int64_t end = now();
  Timeline& all = timeline();
  const std::lock_guard lock(all.mutex);
  if (all.entries.size() < kMostEntries) {
    all.entries.push_back({work.label(), timeline_stream, context.device, begin, end});
  }
  return result;
}

bool write_timeline(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (!file) return false;
  Timeline& all = timeline();
  const std::lock_guard lock(all.mutex);
  std::fprintf(file, "[");
  const char* separator = "\n";
  for (const Entry& e : all.entries) {
    std::fprintf(
        file,
        "%s{\"ph\": \"X\", \"pid\": %d, \"tid\": %llu, \"ts\": %.3f, \"dur\": %.3f, \"cat\": \"device %d\", \"name\": \"%s\"}",
        separator, static_cast<int>(::getpid()), static_cast<unsigned long long>(e.stream), static_cast<double>(e.begin) / 1e3,
        static_cast<double>(e.end - e.begin) / 1e3, e.device, e.label.c_str());
    separator = ",\n";
  }
  std::fprintf(file, "\n]\n");
  return std::fclose(file) == 0;
}

}  // namespace simgpu
