// Loads a library of the CUDA toolkit and calls one function of it that starts its runtime, then tells what vramd handed out.
// usage: hook_contract_child LIBRARY FUNCTION ARGUMENTS, where ARGUMENTS names how the function is called
// Built with HOOK_STATIC_RUNTIME it has the runtime in itself and takes no arguments.
#include <cstdio>
#include <cstring>

#include "tests/integration/hook_support.hpp"

using namespace vramd::testing;

#ifndef HOOK_STATIC_RUNTIME
namespace {

// All these return a status of the size of an int; the simulated driver is refused, so nothing comes of the handles.
int call(void* function, const char* arguments) {
  void* handle = nullptr;
  int number = 0;
  if (std::strcmp(arguments, "handle") == 0) return reinterpret_cast<int (*)(void**)>(function)(&handle);
  if (std::strcmp(arguments, "handle,100") == 0) return reinterpret_cast<int (*)(void**, int)>(function)(&handle, 100);
  if (std::strcmp(arguments, "plan") == 0) {
    constexpr int kComplexToComplex = 0x29;
    return reinterpret_cast<int (*)(int*, int, int, int)>(function)(&number, 16, kComplexToComplex, 1);
  }
  if (std::strcmp(arguments, "communicator") == 0) {
    const int device = 0;
    return reinterpret_cast<int (*)(void**, int, const int*)>(function)(&handle, 1, &device);
  }
  if (std::strcmp(arguments, "count") == 0) return reinterpret_cast<int (*)(int*)>(function)(&number);
  return -1;
}

}  // namespace
#endif

#ifdef HOOK_STATIC_RUNTIME
extern "C" int cudaGetDeviceCount(int*);
#endif

int main(int count, char** words) {
#ifdef HOOK_STATIC_RUNTIME
  (void)count, (void)words;
  int devices = 0;
  std::printf("result %d\n", cudaGetDeviceCount(&devices));
#else
  if (count != 4) return 2;
  void* const library = dlopen(words[1], RTLD_NOW);
  if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 77;
  void* const function = dlsym(library, words[2]);
  if (function == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 77;
  std::printf("result %d\n", call(function, words[3]));
#endif
  const vramd_hook_counts counts = hook_counts();
  std::printf("dlsym %llu %llu\n", static_cast<unsigned long long>(counts.lookups),
              static_cast<unsigned long long>(counts.lookup_replacements));
  std::printf("queries %llu %llu %llu\n", static_cast<unsigned long long>(counts.queries),
              static_cast<unsigned long long>(counts.query_replacements),
              static_cast<unsigned long long>(counts.queries_of_unknown_abi));
  const auto handed_out = reinterpret_cast<std::uint64_t (*)(const char*)>(exported_by_shim("vramd_hook_handed_out"));
  for (const std::string& name : hooked_names()) {
    std::printf("hooked %s %llu\n", name.c_str(), static_cast<unsigned long long>(handed_out(name.c_str())));
  }
  return 0;
}
