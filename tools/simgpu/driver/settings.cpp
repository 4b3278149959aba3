#include "tools/simgpu/driver/settings.hpp"

#include <cuda.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace simgpu {
namespace {

std::string text(const char* name, const char* fallback = "") {
  const char* value = std::getenv(name);
  return value ? value : fallback;
}

std::optional<std::uint64_t> number(const char* name) {
  const std::string value = text(name);
  if (value.empty()) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const unsigned long long parsed = std::strtoull(value.c_str(), &end, 10);
  constexpr unsigned long long kMost = 1ull << 40;  // as MiB more than any address space
  if (*end == '\0' && value[0] >= '0' && value[0] <= '9' && errno == 0 && parsed <= kMost) return parsed;
  std::fprintf(stderr, "simgpu: %s=\"%s\" is not a whole number up to 2^40; it is ignored\n", name, value.c_str());
  return std::nullopt;
}

bool flag(const char* name, bool fallback) { return number(name).value_or(fallback) != 0; }

// Measured on an A100 by kvcached: cost per call, in microseconds.
constexpr Latencies kA100{193, 1.5, 36, 26};

// "create:193,map:1.5"
Latencies latencies(const std::string& list) {
  Latencies result;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string item = list.substr(at, end - at);
    const std::size_t colon = item.find(':');
    const std::string name = item.substr(0, colon);
    double* target = name == "create"   ? &result.create
                     : name == "map"    ? &result.map
                     : name == "access" ? &result.access
                     : name == "unmap"  ? &result.unmap
                                        : nullptr;
    if (target && colon != std::string::npos) {
      *target = std::strtod(item.c_str() + colon + 1, nullptr);
    } else {
      std::fprintf(stderr,
                   "simgpu: SIM_LATENCY_US: \"%s\" is not understood; write create:US, map:US, access:US or "
                   "unmap:US\n",
                   item.c_str());
    }
    at = end + 1;
  }
  return result;
}

int compute_mode(const std::string& name) {
  if (name == "exclusive_process") return CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
  if (name == "prohibited") return CU_COMPUTEMODE_PROHIBITED;
  if (name != "default") {
    std::fprintf(stderr, "simgpu: SIM_COMPUTE_MODE=\"%s\" is not known; write default, exclusive_process or prohibited\n",
                 name.c_str());
  }
  return CU_COMPUTEMODE_DEFAULT;
}

Settings read_environment() {
  constexpr std::uint64_t kMiB = 1u << 20;
  Settings s;
  s.machine = text("SIM_NAME", "default");
  s.folder = text("SIM_DIR", "/dev/shm") + "/simgpu-" + s.machine;
  s.profile = text("SIM_PROFILE", "rtx-a5000-24g");
  if (const auto megabytes = number("SIM_CAPACITY_MB")) s.capacity = *megabytes * kMiB;
  s.devices = static_cast<int>(std::min<std::uint64_t>(number("SIM_DEVICES").value_or(1), 8));
  s.version = static_cast<int>(number("SIM_VERSION").value_or(13000));
  s.context_bytes = number("SIM_CONTEXT_MB").value_or(300) * kMiB;
  s.trace = flag("SIM_TRACE", false);
  s.poison = flag("SIM_POISON", false);
  s.strict = flag("SIM_STRICT", false);
  s.stale = flag("SIM_STALE", false);
  s.protect = flag("SIM_PROTECT", false);
  s.host_numa = flag("SIM_HOST_NUMA", true);
  s.vmm_needs_context = flag("SIM_VMM_NEEDS_CONTEXT", false);
  s.log_path = text("SIM_LOG");
  s.counts_path = text("SIM_COUNTS");
  s.timeline_path = text("SIM_TIMELINE");
  s.failures = text("SIM_FAIL");
  s.seed = number("SIM_SEED").value_or(1);
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) s.visible_devices = visible;
  s.compute_mode = compute_mode(text("SIM_COMPUTE_MODE", "default"));
  s.linger_ms = number("SIM_LINGER_MS").value_or(0);
  s.time = flag("SIM_TIME", false);
  s.launch_us = static_cast<double>(number("SIM_LAUNCH_US").value_or(0));
  if (s.time) s.latency = kA100;
  if (const std::string list = text("SIM_LATENCY_US"); !list.empty()) s.latency = latencies(list);
  return s;
}

}  // namespace

const Settings& settings() {
  // Leaked like all state of the driver: worker threads outlive static destructors.
  static const Settings* const instance = new Settings(read_environment());
  return *instance;
}

}  // namespace simgpu
