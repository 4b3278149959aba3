#include "tools/simgpu/driver/failures.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/simgpu/driver/calls.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {

std::atomic<bool> failures_wanted{false};

namespace {

// "name:n=code", the n-th call of the name answers the code; or "name:p0.01=code", each call does with that probability.
struct Rule {
  std::string name;
  std::uint64_t call = 0;
  double probability = 0;  // used when `call` is 0
  CUresult result = CUDA_SUCCESS;
  std::uint64_t seen = 0;
};

// A rule for "cuMemCreate" also counts "cuMemCreate_v2" and "cuMemCreate_ptsz".
bool covers(const std::string& rule, const char* function) {
  if (std::strncmp(function, rule.c_str(), rule.size()) != 0) return false;
  const char* rest = function + rule.size();
  return *rest == '\0' || std::strncmp(rest, "_v", 2) == 0 || std::strncmp(rest, "_pt", 3) == 0;
}

struct Rules {
  std::vector<std::unique_ptr<Rule>> all;
  std::vector<std::vector<Rule*>> by_function;
};

std::mutex& rules_mutex() {
  static std::mutex* const instance = new std::mutex;
  return *instance;
}
Rules& rules() {  // guarded by rules_mutex()
  static Rules* const instance = new Rules;
  return *instance;
}

bool not_understood(const std::string& item) {
  log_line(
      "simgpu: SIM_FAIL: \"%s\" is not understood; write name:n=code, for example cuMemCreate:3=2, or name:pX=code with "
      "a probability X above 0 and up to 1",
      item.c_str());
  return false;
}

bool parse_rule(const std::string& item, Rule& rule) {
  const std::size_t colon = item.find(':');
  const std::size_t equals = item.find('=');
  if (colon == std::string::npos || equals == std::string::npos || equals < colon) return not_understood(item);
  rule.name = item.substr(0, colon);
  const char* when = item.c_str() + colon + 1;
  if (*when == 'p') {
    rule.probability = std::strtod(when + 1, nullptr);
  } else {
    rule.call = std::strtoull(when, nullptr, 10);
  }
  if (rule.call == 0 && !(rule.probability > 0 && rule.probability <= 1)) return not_understood(item);
  rule.result = static_cast<CUresult>(std::strtoul(item.c_str() + equals + 1, nullptr, 10));
  return true;
}

bool parse_rules(const std::string& list, Rules& parsed) {
  bool good = true;
  parsed.by_function.resize(kFunctionCount);
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string item = list.substr(at, end - at);
    at = end + 1;
    auto rule = std::make_unique<Rule>();
    if (!parse_rule(item, *rule)) {
      good = false;
      continue;
    }
    bool known = false;
    for (unsigned i = 0; i < kFunctionCount; ++i) {
      if (!covers(rule->name, kFunctions[i].name)) continue;
      parsed.by_function[i].push_back(rule.get());
      known = true;
    }
    if (!known) log_line("simgpu: SIM_FAIL: there is no driver function %s", rule->name.c_str());
    good = good && known;
    parsed.all.push_back(std::move(rule));
  }
  return good;
}

// A number in [0, 1) for the n-th call under a rule: a hash of seed and n (splitmix64), so that a run with one thread is the
// same each time.
double chance(std::uint64_t n) {
  std::uint64_t z = settings().seed + n * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
}

bool set_rules(const std::string& list) {
  Rules parsed;
  if (!parse_rules(list, parsed)) return false;
  const std::lock_guard lock(rules_mutex());
  rules() = std::move(parsed);
  failures_wanted.store(!rules().all.empty(), std::memory_order_relaxed);
  return true;
}

}  // namespace

void read_failures() {
  static const bool done = set_rules(settings().failures);
  (void)done;
}

bool set_failures(const std::string& list) {
  read_failures();
  return set_rules(list);
}

bool injected_failure(unsigned function, CUresult& result) {
  const std::lock_guard lock(rules_mutex());
  if (rules().by_function.empty()) return false;
  bool hit = false;
  for (Rule* const rule : rules().by_function[function]) {
    const std::uint64_t n = ++rule->seen;
    if (rule->call != 0 ? n != rule->call : chance(n) >= rule->probability) continue;
    result = rule->result;
    hit = true;
  }
  return hit;
}

}  // namespace simgpu
