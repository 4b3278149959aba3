// The real driver as wrappers see it, with a driver of fakes in its place.
#include "shim/hook/driver_library.hpp"

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "shim/hook/doors.hpp"
#include "shim/hook/process.hpp"
#include "shim/hook/statistics.hpp"
#include "tests/support/catch.hpp"

using namespace vramd::shim::hook;

namespace {

CUresult fake_device_get_count(int* count) {
  *count = 3;
  return CUDA_SUCCESS;
}

CUresult fake_alloc(CUdeviceptr*, size_t) { return CUDA_SUCCESS; }

CUresult fake_query(const char* symbol, void** function, int, cuuint64_t, CUdriverProcAddressQueryResult*) {
  *function = std::strcmp(symbol, "cuMemAlloc") == 0 ? reinterpret_cast<void*>(&fake_alloc) : nullptr;
  return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

void* fake_driver(const char* name) {
  if (std::strcmp(name, "cuDeviceGetCount") == 0) return reinterpret_cast<void*>(&fake_device_get_count);
  if (std::strcmp(name, "cuGetProcAddress_v2") == 0) return reinterpret_cast<void*>(&fake_query);
  return nullptr;
}

using Query = Signature<Entry::cuGetProcAddress_v2>::Type;

void* ask_for_alloc() {
  void* found = nullptr;
  const auto query = reinterpret_cast<Query>(door_of(Entry::cuGetProcAddress_v2));
  REQUIRE(query("cuMemAlloc", &found, 12000, 0, nullptr) == CUDA_SUCCESS);
  return found;
}

}  // namespace

TEST_CASE("A driver function has the type of cuda.h, a missing one answers NOT_FOUND") {
  use_driver(&fake_driver);
  int count = 0;
  CHECK(real<Entry::cuDeviceGetCount>()(&count) == CUDA_SUCCESS);
  CHECK(count == 3);
  CHECK(real<Entry::cuCtxSynchronize>()() == CUDA_ERROR_NOT_FOUND);
  CHECK(real_entry("cuDeviceGetCount") == reinterpret_cast<void*>(&fake_device_get_count));
  CHECK(real_entry("cuCtxSynchronize") == nullptr);
  CHECK(real_entry("no such name") == nullptr);
}

TEST_CASE("A query is answered with ours, and the driver's answer is what the wrapper calls") {
  use_driver(&fake_driver);
  const std::uint64_t before = times_handed_out(Entry::cuMemAlloc_v2);
  CHECK(ask_for_alloc() == handed_out(Entry::cuMemAlloc_v2));
  CHECK(handed_out(Entry::cuMemAlloc_v2) == door_of(Entry::cuMemAlloc_v2));  // no trampolines in this program
  CHECK(times_handed_out(Entry::cuMemAlloc_v2) == before + 1);
  // The fake exports no cuMemAlloc_v2: this pointer can only come from the query.
  CHECK(real_or_refusal(Entry::cuMemAlloc_v2) == reinterpret_cast<void*>(&fake_alloc));
}

TEST_CASE("Inside a call of our own nothing is hooked") {
  use_driver(&fake_driver);
  {
    const OwnCall outer;
    {
      const OwnCall inner;
      CHECK(OwnCall::active());
    }
    CHECK(OwnCall::active());
    CHECK(ask_for_alloc() == reinterpret_cast<void*>(&fake_alloc));
    std::thread([] { CHECK_FALSE(OwnCall::active()); }).join();
  }
  CHECK_FALSE(OwnCall::active());
  CHECK(ask_for_alloc() == door_of(Entry::cuMemAlloc_v2));
}

TEST_CASE("Threads that ask for the driver's functions at the same time all get them") {
  use_driver(&fake_driver);
  std::atomic<int> waiting{4};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (--waiting; waiting != 0;) std::this_thread::yield();
      for (int round = 0; round < 1000; ++round) {
        int count = 0;
        wrong += real<Entry::cuDeviceGetCount>()(&count) != CUDA_SUCCESS || count != 3;
        void* found = nullptr;
        wrong += reinterpret_cast<Query>(door_of(Entry::cuGetProcAddress_v2))("cuMemAlloc", &found, 12000, 0, nullptr) !=
                     CUDA_SUCCESS ||
                 found != door_of(Entry::cuMemAlloc_v2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
