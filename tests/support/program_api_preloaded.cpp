#include <dlfcn.h>

#include <cstring>

#include "tests/support/program_api.hpp"

namespace vramd::testing {

void* program_entry(const char* name) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  return driver == nullptr ? nullptr : dlsym(driver, name);
}

bool shim_answers() {
  Dl_info where;
  return dladdr(program_entry("cuMemAlloc_v2"), &where) != 0 && std::strstr(where.dli_fname, "libvramd.so") != nullptr;
}

}  // namespace vramd::testing
