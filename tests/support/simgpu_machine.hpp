// For tests of the simulated driver: a context in which each test case may do harm, and what they share.
#pragma once

#include <cuda.h>

#include "tests/support/catch.hpp"
#include "tests/support/misuse.hpp"
#include "tests/support/own_machine.hpp"

#define CU_OK(call) REQUIRE((call) == CUDA_SUCCESS)

struct TestContext {
  explicit TestContext(int ordinal = 0) : device(ordinal) {
    CU_OK(cuInit(0));
#if CUDA_VERSION >= 13000
    CU_OK(cuCtxCreate(&context, nullptr, 0, device));
#else
    CU_OK(cuCtxCreate(&context, 0, device));
#endif
  }
  ~TestContext() { cuCtxDestroy(context); }
  TestContext(const TestContext&) = delete;
  TestContext& operator=(const TestContext&) = delete;

  CUdevice device;
  CUcontext context = nullptr;
};

constexpr std::size_t kMiB = std::size_t{1} << 20;

inline std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  CU_OK(cuMemGetInfo(&free, &total));
  return free;
}

inline CUmemAllocationProp device_prop(int device, bool shareable = false) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  if (shareable) prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return prop;
}

inline CUresult allow(CUdeviceptr address, std::size_t size, int device) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return cuMemSetAccess(address, size, &access, 1);
}

// A gate in a stream: work behind it waits until open() is called. Holds pinned memory.
class StreamGate {
 public:
  StreamGate() {
    void* memory = nullptr;
    CU_OK(cuMemHostAlloc(&memory, sizeof(unsigned), 0));
    word_ = static_cast<unsigned*>(memory);
    *word_ = 0;
  }
  ~StreamGate() {
    open();
    cuCtxSynchronize();
    cuMemFreeHost(word_);
  }
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;

  void close_in(CUstream stream) {
    CU_OK(cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(word_), 1, CU_STREAM_WAIT_VALUE_EQ));
  }
  void open() { __atomic_store_n(word_, 1u, __ATOMIC_SEQ_CST); }

 private:
  unsigned* word_ = nullptr;
};
