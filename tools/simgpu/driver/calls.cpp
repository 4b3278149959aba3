#include "tools/simgpu/driver/calls.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

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

namespace {

std::atomic<std::uint64_t> counters[sizeof(kFunctions) / sizeof(kFunctions[0])];

// One item of SIM_FAIL: "name:n=code", the n-th call of the name answers the code.
struct Failure {
  std::string name;
  std::uint64_t call = 0;
  CUresult result = CUDA_SUCCESS;
  std::atomic<std::uint64_t> seen{0};
};

// A rule for "cuMemCreate" also counts "cuMemCreate_v2" and "cuMemCreate_ptsz".
bool covers(const std::string& rule, const char* function) {
  if (std::strncmp(function, rule.c_str(), rule.size()) != 0) return false;
  const char* rest = function + rule.size();
  return *rest == '\0' || std::strncmp(rest, "_v", 2) == 0 || std::strncmp(rest, "_pt", 3) == 0;
}

struct Watch {
  bool trace = false;
  std::vector<std::unique_ptr<Failure>> failures;
  std::vector<std::vector<Failure*>> by_function;
  bool any = false;

  Watch() : trace(settings().trace) {
    parse(settings().failures);
    by_function.resize(kFunctionCount);
    for (const auto& failure : failures) {
      bool known = false;
      for (unsigned i = 0; i < kFunctionCount; ++i) {
        if (!covers(failure->name, kFunctions[i].name)) continue;
        by_function[i].push_back(failure.get());
        known = true;
      }
      if (!known) log_line("simgpu: SIM_FAIL: there is no driver function %s", failure->name.c_str());
    }
    any = trace || !failures.empty();
  }

  void parse(const std::string& list) {
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t end = std::min(list.find(',', at), list.size());
      const std::string item = list.substr(at, end - at);
      at = end + 1;
      const std::size_t colon = item.find(':');
      const std::size_t equals = item.find('=');
      if (colon == std::string::npos || equals == std::string::npos || equals < colon) {
        log_line("simgpu: SIM_FAIL: \"%s\" is not understood; write name:n=code, for example cuMemCreate:3=2", item.c_str());
        continue;
      }
      auto failure = std::make_unique<Failure>();
      failure->name = item.substr(0, colon);
      failure->call = std::strtoull(item.c_str() + colon + 1, nullptr, 10);
      failure->result = static_cast<CUresult>(std::strtoul(item.c_str() + equals + 1, nullptr, 10));
      failures.push_back(std::move(failure));
    }
  }
};

Watch& watch() {
  static Watch* const instance = new Watch;
  return *instance;
}

bool injected(unsigned function, CUresult& result) {
  bool hit = false;
  for (Failure* failure : watch().by_function[function]) {
    if (failure->seen.fetch_add(1, std::memory_order_relaxed) + 1 != failure->call) continue;
    result = failure->result;
    hit = true;
  }
  return hit;
}

}  // namespace

bool enter_call(unsigned function, CallTraits traits, CUresult& result) {
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
  if (watch().any && injected(function, result)) {
    log_line("simgpu: injected: %s -> %d", kFunctions[function].name, static_cast<int>(result));
    return false;
  }
  return true;
}

CUresult leave_call(unsigned function, CUresult result) {
  if (watch().trace) log_line("simgpu: %s -> %d", kFunctions[function].name, static_cast<int>(result));
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
