// Hooks that are switched off: VRAMD_DISABLE=1, or CUDA_INJECTION64_PATH is set. Runs on the simulated driver
// with libvramd.so preloaded.
#include <cuda.h>

#include "tests/integration/hook_support.hpp"
#include "tests/support/catch.hpp"

using namespace vramd::testing;

TEST_CASE("Switched off, dlsym and cuGetProcAddress answer with the driver's pointers") {
  REQUIRE(file_of(exported_by_shim("vramd_hook_statistics")) == "libvramd.so");
  void* driver = open_library("libcuda.so.1");
  for (const std::string& name : driver_names()) {
    INFO(name);
    CHECK(dlsym(driver, name.c_str()) == untouched_dlsym(driver, name.c_str()));
  }

  using Query = CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  for (void* query : {dlsym(driver, "cuGetProcAddress_v2"), exported_by_shim("cuGetProcAddress_v2")}) {
    void* found = nullptr;
    REQUIRE(reinterpret_cast<Query*>(query)("cuMemAlloc", &found, 3020, 0, nullptr) == CUDA_SUCCESS);
    CHECK(found == untouched_dlsym(driver, "cuMemAlloc_v2"));
  }
  const vramd_hook_counts counts = hook_counts();
  CHECK(counts.lookups == 0);
  CHECK(counts.queries == 0);
}
