#include "tools/simgpu/driver/log.hpp"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "tools/simgpu/driver/calls.hpp"
#include "tools/simgpu/driver/engines.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {
namespace {

struct MisuseCount {
  std::uint64_t count = 0;
  std::string first;
};

struct Misuses {
  std::mutex mutex;
  std::map<std::string, MisuseCount> by_kind;
};

Misuses& misuses() {
  static Misuses* const instance = new Misuses;
  return *instance;
}

std::FILE* log_file() {
  static std::FILE* const file = [] {
    const std::string& path = settings().log_path;
    std::FILE* opened = path.empty() ? nullptr : std::fopen(path.c_str(), "ae");
    if (opened) std::setvbuf(opened, nullptr, _IOLBF, BUFSIZ);
    return opened ? opened : stderr;
  }();
  return file;
}

std::string counts_path() {
  std::string path = settings().counts_path;
  const std::size_t at = path.find("%p");
  if (at != std::string::npos) path.replace(at, 2, std::to_string(::getpid()));
  return path;
}

void write_counts() {
  const std::string path = counts_path();
  if (path.empty()) return;
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (!file) {
    std::fprintf(stderr, "simgpu: SIM_COUNTS: %s can't be written\n", path.c_str());
    return;
  }
  std::uint64_t unimplemented = 0;
  std::fprintf(file, "{\n  \"calls\": {");
  const char* separator = "";
  for (unsigned i = 0; i < kFunctionCount; ++i) {
    const std::uint64_t count = call_count(i);
    if (count == 0) continue;
    if (!kFunctions[i].implemented) unimplemented += count;
    std::fprintf(file, "%s\n    \"%s\": %llu", separator, kFunctions[i].name, static_cast<unsigned long long>(count));
    separator = ",";
  }
  std::fprintf(file, "\n  },\n  \"moved\": {\"to_device\": %llu, \"to_host\": %llu},",
               static_cast<unsigned long long>(moved_bytes(Direction::to_device)),
               static_cast<unsigned long long>(moved_bytes(Direction::to_host)));
  std::fprintf(file, "\n  \"unimplemented\": %llu,\n  \"misuse\": {", static_cast<unsigned long long>(unimplemented));
  separator = "";
  for (const auto& [kind, seen] : misuses().by_kind) {
    std::fprintf(file, "%s\n    \"%s\": %llu", separator, kind.c_str(), static_cast<unsigned long long>(seen.count));
    separator = ",";
  }
  std::fprintf(file, "\n  }\n}\n");
  std::fclose(file);
}

// Runs after the program's own exit handlers, so that their calls are counted too.
__attribute__((destructor)) void at_exit() { report_at_exit(); }

}  // namespace

void log_line(const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  std::fprintf(log_file(), "%s\n", line);
}

void misuse(const char* kind, const std::string& detail) {
  {
    const std::lock_guard lock(misuses().mutex);
    MisuseCount& seen = misuses().by_kind[kind];
    if (seen.count++ == 0) seen.first = detail;
  }
  if (settings().strict) {
    std::fprintf(stderr, "simgpu: misuse: %s (%s); SIM_STRICT=1 ends the process here\n", kind, detail.c_str());
    std::abort();
  }
}

void report_at_exit() {
  if (process_state.load() == ProcessState::forked) return;  // the parent reports for its own calls
  const std::lock_guard lock(misuses().mutex);
  for (const auto& [kind, seen] : misuses().by_kind) {
    std::fprintf(stderr, "simgpu: misuse: %s: %llu time%s (first: %s)\n", kind.c_str(),
                 static_cast<unsigned long long>(seen.count), seen.count == 1 ? "" : "s", seen.first.c_str());
  }
  write_counts();
}

}  // namespace simgpu
