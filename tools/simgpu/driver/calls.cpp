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

// One item of SIM_FAIL: "name:n=code", the n-th call of the name answers the code; or "name:p0.01=code", each call does with
// that probability.
struct Failure {
  std::string name;
  std::uint64_t call = 0;
  double probability = 0;  // used when `call` is 0
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

  static void not_understood(const std::string& item) {
    log_line(
        "simgpu: SIM_FAIL: \"%s\" is not understood; write name:n=code, for example cuMemCreate:3=2, or name:pX=code with "
        "a probability X above 0 and up to 1",
        item.c_str());
  }

  void parse(const std::string& list) {
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t end = std::min(list.find(',', at), list.size());
      const std::string item = list.substr(at, end - at);
      at = end + 1;
      const std::size_t colon = item.find(':');
      const std::size_t equals = item.find('=');
      if (colon == std::string::npos || equals == std::string::npos || equals < colon) {
        not_understood(item);
        continue;
      }
      auto failure = std::make_unique<Failure>();
      failure->name = item.substr(0, colon);
      const char* when = item.c_str() + colon + 1;
      if (*when == 'p') {
        failure->probability = std::strtod(when + 1, nullptr);
      } else {
        failure->call = std::strtoull(when, nullptr, 10);
      }
      if (failure->call == 0 && !(failure->probability > 0 && failure->probability <= 1)) {
        not_understood(item);
        continue;
      }
      failure->result = static_cast<CUresult>(std::strtoul(item.c_str() + equals + 1, nullptr, 10));
      failures.push_back(std::move(failure));
    }
  }
};

Watch& watch() {
  static Watch* const instance = new Watch;
  return *instance;
}

// A number in [0, 1) for the n-th call under a rule: a hash of seed and n (splitmix64), so that a run with one thread is the
// same each time.
double chance(std::uint64_t n) {
  std::uint64_t z = settings().seed + n * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
}

bool injected(unsigned function, CUresult& result) {
  bool hit = false;
  for (Failure* failure : watch().by_function[function]) {
    const std::uint64_t n = failure->seen.fetch_add(1, std::memory_order_relaxed) + 1;
    if (failure->call != 0 ? n != failure->call : chance(n) >= failure->probability) continue;
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
