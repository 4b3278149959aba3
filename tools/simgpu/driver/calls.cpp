#include "tools/simgpu/driver/calls.hpp"

#include "tools/simgpu/driver/failures.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {

const FunctionInfo kFunctions[] = {
#include "functions.inc"
};
const unsigned kFunctionCount = sizeof(kFunctions) / sizeof(kFunctions[0]);

std::atomic<ProcessState> process_state{ProcessState::uninitialised};
thread_local bool inside_host_function = false;
thread_local bool per_thread_default_stream = false;
thread_local const void* call_site = nullptr;

namespace {

std::atomic<std::uint64_t> counters[sizeof(kFunctions) / sizeof(kFunctions[0])];

bool tracing() {
  static const bool on = settings().trace;
  return on;
}

}  // namespace

bool enter_call(unsigned function, CallTraits traits, const void* caller, CUresult& result) {
  if (!inside_host_function) call_site = caller;
  counters[function].fetch_add(1, std::memory_order_relaxed);
  per_thread_default_stream = (traits & kPerThread) != 0;
  if ((traits & kBeforeInit) == 0) {
    // A child forked after cuInit and a process before it get the same answer. Matched by the release in
    // cuInit.
    if (process_state.load(std::memory_order_acquire) != ProcessState::ready) {
      result = CUDA_ERROR_NOT_INITIALIZED;
      return false;
    }
    if (inside_host_function) {
      misuse("driver call inside a host function", kFunctions[function].name);
      result = CUDA_ERROR_NOT_PERMITTED;
      return false;
    }
  }
  read_failures();
  if (failures_wanted.load(std::memory_order_relaxed) && injected_failure(function, result)) {
    log_line("simgpu: injected: %s -> %d", kFunctions[function].name, static_cast<int>(result));
    return false;
  }
  return true;
}

CUresult leave_call(unsigned function, CUresult result) {
  if (tracing()) log_line("simgpu: %s -> %d", kFunctions[function].name, static_cast<int>(result));
  return result;
}

CUresult missing_call(unsigned function) {
  counters[function].fetch_add(1, std::memory_order_relaxed);
  log_line("simgpu: unimplemented: %s", kFunctions[function].name);
  misuse("unimplemented driver function called", kFunctions[function].name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

std::uint64_t call_count(unsigned function) { return counters[function].load(std::memory_order_relaxed); }

}  // namespace simgpu
