// NVIDIA's own runtime with libvramd.so preloaded, on the simulated driver. The runtime resolves all its
// driver functions, then refuses to run, since it authenticates the driver; until then every hook must have
// been placed. Linked once to the shared and once to the static runtime.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/integration/hook_support.hpp"

using namespace vramd::testing;

namespace {

int g_failures = 0;

void expect(bool condition, const char* what, long seen) {
  if (condition) return;
  std::printf("expected: %s (seen: %ld)\n", what, seen);
  ++g_failures;
}

// The base name of a hooked function, as queries name it.
std::string base_of(std::string name) {
  for (const char* suffix : {"_ptsz", "_ptds", "_v2", "_v3", "_v4"}) {
    if (name.ends_with(suffix)) name.erase(name.size() - std::strlen(suffix));
  }
  return name;
}

// name -> number of queries, as observed with the runtime of CUDA 13.0
std::set<std::string> names_in_list() {
  std::ifstream file(HOOK_LOOKUPS_FILE);
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    if (!line.starts_with('#') && words >> name) names.insert(name);
  }
  return names;
}

}  // namespace

int main() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  expect(result != cudaSuccess, "the runtime refuses a driver that is not genuine", result);
  expect(result != cudaErrorInsufficientDriver, "the runtime got as far as authenticating the driver", result);

  const vramd_hook_counts counts = hook_counts();
  expect(counts.lookups == 1, "one dlsym of a hooked driver name", static_cast<long>(counts.lookups));
  expect(counts.lookup_replacements == 1, "it was answered with ours", static_cast<long>(counts.lookup_replacements));
  // 440 in CUDA 13.0; another runtime may ask more or less.
  const bool exact = CUDART_VERSION / 10 == 1300;
  expect(exact ? counts.queries == 440 : counts.queries > 4, "the queries of the list", static_cast<long>(counts.queries));
  expect(counts.queries_of_unknown_abi == 0, "no ABI that we don't know", static_cast<long>(counts.queries_of_unknown_abi));

  using HandedOut = std::uint64_t(const char*);
  const auto handed_out = reinterpret_cast<HandedOut*>(exported_by_shim("vramd_hook_handed_out"));
  const std::set<std::string> asked = names_in_list();
  int placed = 0;
  std::set<std::string> bases;
  for (const std::string& name : hooked_names()) {
    const std::uint64_t times = handed_out(name.c_str());
    if (times > 0) bases.insert(base_of(name));
    placed += times > 0;
    std::printf("%-40s %llu\n", name.c_str(), static_cast<unsigned long long>(times));
  }
  for (const std::string& name : hooked_names()) {
    if (asked.contains(base_of(name)) && !bases.contains(base_of(name))) expect(false, name.c_str(), 0);
  }
  std::printf("%d of %zu hooked functions were handed out\n", placed, hooked_names().size());
  std::printf("cudaGetDeviceCount: %d %s\n", result, cudaGetErrorString(result));
  return g_failures == 0 ? 0 : 1;
}
