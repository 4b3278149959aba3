// simgpu.h.
#include "tools/simgpu/simgpu.h"

#include <cstring>

#include "tools/simgpu/driver/calls.hpp"
#include "tools/simgpu/driver/engines.hpp"
#include "tools/simgpu/driver/failures.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/timeline.hpp"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

SIMGPU_EXPORT std::uint64_t simgpu_call_count(const char* function) {
  for (unsigned i = 0; function && i < simgpu::kFunctionCount; ++i) {
    if (std::strcmp(simgpu::kFunctions[i].name, function) == 0) return simgpu::call_count(i);
  }
  return UINT64_MAX;
}

SIMGPU_EXPORT std::uint64_t simgpu_moved_bytes(int to_host) {
  return simgpu::moved_bytes(to_host ? simgpu::Direction::to_host : simgpu::Direction::to_device);
}

SIMGPU_EXPORT int simgpu_fail(const char* rules) { return simgpu::set_failures(rules ? rules : "") ? 0 : -1; }
SIMGPU_EXPORT std::uint64_t simgpu_misuse_count(const char* kind) { return simgpu::misuse_count(kind); }
SIMGPU_EXPORT void simgpu_report_misuse(void) { simgpu::report_misuse(); }
SIMGPU_EXPORT void simgpu_forget_misuse(void) { simgpu::forget_misuse(); }
SIMGPU_EXPORT void simgpu_set_launch_us(double microseconds) { simgpu::set_launch_us(microseconds); }
SIMGPU_EXPORT int simgpu_write_timeline(const char* path) { return path && simgpu::write_timeline(path) ? 0 : -1; }
