// The hook with a driver that behaves oddly (hook_odd_driver.c) and with programs that start in odd ways.
// Runs with libvramd.so preloaded.
#include <cuda.h>

#include <atomic>
#include <thread>

#include "tests/integration/hook_support.hpp"
#include "tests/support/catch.hpp"

using namespace vramd::testing;

namespace {

template <class Function>
Function* exported(const char* name) {
  return reinterpret_cast<Function*>(exported_by_shim(name));
}

void* driver() { return open_library("libcuda.so.1"); }

}  // namespace

// The first test: nothing has loaded the driver yet, so the trampoline does.
TEST_CASE("A first call through a trampoline keeps every argument register") {
  using ManyArguments = CUresult(long, long, long, long, long, long, double, double, double, double, double, double, double,
                                 double, long, double);
  auto* many = exported<ManyArguments>("cuParamSetf");
  CHECK(many(1, 2, 3, 4, 5, 6, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 7, 8.5) == CUDA_SUCCESS);
  CHECK(many(1, 2, 3, 4, 5, 6, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 7, 8.5) == CUDA_SUCCESS);
  CHECK(many(1, 2, 3, 4, 5, 6, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 0.0, 7, 8.5) == CUDA_ERROR_INVALID_VALUE);

  using Clamp = CUresult(void*, float, float);
  CHECK(exported<Clamp>("cuTexRefSetMipmapLevelClamp")(reinterpret_cast<void*>(8), 0.25F, 3.75F) == CUDA_SUCCESS);
}

TEST_CASE("Threads that make the first call of a trampoline together all reach the driver") {
  auto* synchronise = exported<CUresult()>("cuCtxSynchronize");
  std::atomic<int> waiting{8};
  std::atomic<int> succeeded{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (--waiting; waiting != 0;) std::this_thread::yield();
      succeeded += synchronise() == CUDA_SUCCESS;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(succeeded == 8);
}

TEST_CASE("Look-ups that the driver makes itself are not hooked") {
  REQUIRE(reinterpret_cast<CUresult (*)(unsigned)>(dlsym(driver(), "cuInit"))(0) == CUDA_SUCCESS);
  void* plain = untouched_dlsym(driver(), "cuMemAlloc_v2");
  CHECK(reinterpret_cast<void* (*)()>(dlsym(driver(), "odd_driver_own_lookup"))() == plain);
  CHECK(reinterpret_cast<void* (*)()>(dlsym(driver(), "odd_driver_constructor_lookup"))() == plain);
}

TEST_CASE("A function that the driver lacks answers NOT_FOUND") {
  CHECK(exported<CUresult(CUdeviceptr)>("cuMemFree_v2")(1) == CUDA_ERROR_NOT_FOUND);  // hooked
  CHECK(exported<CUresult(CUdevice*, int)>("cuDeviceGet")(nullptr, 0) == CUDA_ERROR_NOT_FOUND);
  CHECK(dlsym(driver(), "cuMemFree_v2") == nullptr);
  CHECK(dlsym(driver(), "cuDeviceGet") == nullptr);
}

TEST_CASE("An ABI newer than our headers stays the driver's") {
  using Query = CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  auto* query = reinterpret_cast<Query*>(dlsym(driver(), "cuGetProcAddress_v2"));
  REQUIRE(file_of(reinterpret_cast<void*>(query)) == "libvramd.so");
  void* found = nullptr;
  const vramd_hook_counts before = hook_counts();

  REQUIRE(query("cuMemAlloc", &found, CUDA_VERSION, 0, nullptr) == CUDA_SUCCESS);
  CHECK(found == exported_by_shim("cuMemAlloc_v2"));
  CHECK(hook_counts().queries_of_unknown_abi == before.queries_of_unknown_abi);

  REQUIRE(query("cuMemAlloc", &found, CUDA_VERSION + 10, 0, nullptr) == CUDA_SUCCESS);
  CHECK(file_of(found) == "libcuda.so.1");
  CHECK(hook_counts().queries_of_unknown_abi == before.queries_of_unknown_abi + 1);

  // The same version, but the answer is an export that we know.
  REQUIRE(query("cuInit", &found, CUDA_VERSION + 10, 0, nullptr) == CUDA_SUCCESS);
  CHECK(found == exported_by_shim("cuInit"));

  found = reinterpret_cast<void*>(1);
  CHECK(query("cuMemFree", &found, CUDA_VERSION, 0, nullptr) == CUDA_SUCCESS);
  CHECK(found == nullptr);
}
