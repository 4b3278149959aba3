#include "tools/simgpu/driver/log.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "tools/simgpu/driver/calls.hpp"
#include "tools/simgpu/driver/engines.hpp"
#include "tools/simgpu/driver/settings.hpp"
#include "tools/simgpu/driver/timeline.hpp"

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

// " at program+0x12 (function)": where the driver was called, if that is known.
std::string site_text() {
  Dl_info info{};
  if (!call_site || ::dladdr(call_site, &info) == 0 || !info.dli_fname) return "";
  const char* const slash = std::strrchr(info.dli_fname, '/');
  char text[512];
  const auto offset = static_cast<const char*>(call_site) - static_cast<const char*>(info.dli_fbase);
  std::snprintf(text, sizeof text, " at %s+0x%tx%s%s%s", slash ? slash + 1 : info.dli_fname, offset, info.dli_sname ? " (" : "",
                info.dli_sname ? info.dli_sname : "", info.dli_sname ? ")" : "");
  return text;
}

// "%p" in a path becomes the pid.
std::string for_this_process(std::string path) {
  const std::size_t at = path.find("%p");
  if (at != std::string::npos) path.replace(at, 2, std::to_string(::getpid()));
  return path;
}

void write_counts() {
  const std::string path = for_this_process(settings().counts_path);
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
  const std::lock_guard lock(misuses().mutex);
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
  const std::string where = detail + site_text();
  {
    const std::lock_guard lock(misuses().mutex);
    MisuseCount& seen = misuses().by_kind[kind];
    if (seen.count++ == 0) seen.first = where;
  }
  if (settings().strict) {
    std::fprintf(stderr, "simgpu: misuse: %s (%s); SIM_STRICT=1 ends the process here\n", kind, where.c_str());
    std::abort();
  }
}

void report_misuse() {
  const std::lock_guard lock(misuses().mutex);
  for (const auto& [kind, seen] : misuses().by_kind) {
    std::fprintf(stderr, "simgpu: misuse: %s: %llu time%s (first: %s)\n", kind.c_str(),
                 static_cast<unsigned long long>(seen.count), seen.count == 1 ? "" : "s", seen.first.c_str());
  }
}

std::uint64_t misuse_count(const char* kind) {
  const std::lock_guard lock(misuses().mutex);
  std::uint64_t count = 0;
  for (const auto& [known, seen] : misuses().by_kind) count += !kind || known == kind ? seen.count : 0;
  return count;
}

void forget_misuse() {
  const std::lock_guard lock(misuses().mutex);
  misuses().by_kind.clear();
}

void report_at_exit() {
  if (process_state.load() == ProcessState::forked) return;  // the parent reports for its own calls
  report_misuse();
  write_counts();
  const std::string path = for_this_process(settings().timeline_path);
  if (!path.empty() && !write_timeline(path)) std::fprintf(stderr, "simgpu: SIM_TIMELINE: %s can't be written\n", path.c_str());
}

}  // namespace simgpu
