// What a program can see of its memory under the shim, through the driver API, on the simulated GPU.
// Needs two simulated devices of at least 2 GiB. Runs preloaded, and in one executable under sanitizers.
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/own_machine.hpp"
#include "tests/support/program_api.hpp"

using vramd::testing::shim_answers;

namespace {

constexpr std::size_t kMiB = 1 << 20;

const OwnMachine machine("rtx-a5000-24g", "2");

void start(int device = 0) {
  REQUIRE(shim_answers());
  REQUIRE(PROGRAM(cuInit)(0) == CUDA_SUCCESS);
  CUcontext context;
  REQUIRE(PROGRAM(cuDevicePrimaryCtxRetain)(&context, device) == CUDA_SUCCESS);
  REQUIRE(PROGRAM(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
}

CUdeviceptr allocate(std::size_t size) {
  CUdeviceptr p = 0;
  REQUIRE(PROGRAM(cuMemAlloc_v2)(&p, size) == CUDA_SUCCESS);
  return p;
}

void free(CUdeviceptr p) { REQUIRE(PROGRAM(cuMemFree_v2)(p) == CUDA_SUCCESS); }

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  REQUIRE(PROGRAM(cuMemGetInfo_v2)(&free, &total) == CUDA_SUCCESS);
  REQUIRE(free <= total);
  return free;
}

// The block really is one of vramd's: what the driver allocates is capable of legacy IPC, and ours is not yet.
bool ours(CUdeviceptr p) {
  unsigned capable = 7;
  REQUIRE(PROGRAM(cuPointerGetAttribute)(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p) == CUDA_SUCCESS);
  return capable == 0;
}

// It looks like memory of cuMemAlloc all the same, not like mapped memory.
bool looks_allocated(CUdeviceptr p) {
  CUmemGenericAllocationHandle handle = 0;
  std::size_t mapping = 0;
  CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MAPPING_SIZE;
  void* out = &mapping;
  REQUIRE(PROGRAM(cuPointerGetAttributes)(1, &attribute, &out, p) == CUDA_SUCCESS);
  return PROGRAM(cuMemRetainAllocationHandle)(&handle, reinterpret_cast<void*>(p)) == CUDA_ERROR_INVALID_VALUE && mapping != 0;
}

}  // namespace

TEST_CASE("shim: blocks hold their bytes and do not overlap") {
  start();
  std::vector<CUdeviceptr> blocks;
  for (std::size_t size : {std::size_t{1}, std::size_t{512}, std::size_t{5000}, kMiB, kMiB + 1, 3 * kMiB, 100 * kMiB}) {
    blocks.push_back(allocate(size));
    REQUIRE(blocks.back() % 256 == 0);
    REQUIRE(ours(blocks.back()));
    REQUIRE(looks_allocated(blocks.back()));
    REQUIRE(PROGRAM(cuMemsetD8_v2)(blocks.back(), static_cast<unsigned char>(blocks.size()), size) == CUDA_SUCCESS);
  }
  const std::size_t sizes[] = {1, 512, 5000, kMiB, kMiB + 1, 3 * kMiB, 100 * kMiB};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    std::vector<unsigned char> bytes(sizes[i]);
    REQUIRE(PROGRAM(cuMemcpyDtoH_v2)(bytes.data(), blocks[i], sizes[i]) == CUDA_SUCCESS);
    for (std::size_t k : {std::size_t{0}, sizes[i] / 2, sizes[i] - 1}) CHECK(bytes[k] == i + 1);
  }
  for (CUdeviceptr p : blocks) free(p);
}

TEST_CASE("shim: sizes and errors are those of cuMemAlloc") {
  start();
  CUdeviceptr p = 0;
  CHECK(PROGRAM(cuMemAlloc_v2)(&p, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(PROGRAM(cuMemAlloc_v2)(nullptr, 10) == CUDA_ERROR_INVALID_VALUE);
  CHECK(PROGRAM(cuMemAlloc_v2)(&p, SIZE_MAX - 3) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(PROGRAM(cuMemAlloc_v2)(&p, std::size_t{1} << 42) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(p == 0);
  free(allocate(kMiB));  // out of memory is not sticky
}

TEST_CASE("shim: free of anything but a live block is refused") {
  start();
  const CUdeviceptr p = allocate(10000), keep = allocate(10000);
  CHECK(PROGRAM(cuMemFree_v2)(p + 512) == CUDA_ERROR_INVALID_VALUE);
  free(p);
  CHECK(PROGRAM(cuMemFree_v2)(p) == CUDA_ERROR_INVALID_VALUE);
  int on_stack = 0;
  CHECK(PROGRAM(cuMemFree_v2)(reinterpret_cast<CUdeviceptr>(&on_stack)) == CUDA_ERROR_INVALID_VALUE);
  free(keep);
  forget_misuse();
}

TEST_CASE("shim: memory of other kinds is freed by the driver") {
  start();
  CUdeviceptr managed = 0;
  REQUIRE(PROGRAM(cuMemAllocManaged)(&managed, kMiB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  CHECK(PROGRAM(cuMemFree_v2)(managed) == CUDA_SUCCESS);
  CHECK(PROGRAM(cuMemFree_v2)(managed) == CUDA_ERROR_INVALID_VALUE);
  forget_misuse();
}

TEST_CASE("shim: pitched rows are aligned and complete") {
  start();
  CUdeviceptr p = 0;
  std::size_t pitch = 0;
  REQUIRE(PROGRAM(cuMemAllocPitch_v2)(&p, &pitch, 1000, 300, 4) == CUDA_SUCCESS);
  CHECK(pitch >= 1000);
  CHECK(pitch % 512 == 0);
  CHECK(ours(p));
  CHECK(PROGRAM(cuMemsetD8_v2)(p, 7, pitch * 300) == CUDA_SUCCESS);
  free(p);
  CHECK(PROGRAM(cuMemAllocPitch_v2)(&p, &pitch, 1000, 300, 3) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("shim: address range and attributes describe the block, not the mapping") {
  start();
  const CUdeviceptr p = allocate(5'000'000);
  CUdeviceptr base = 0;
  std::size_t size = 0;
  REQUIRE(PROGRAM(cuMemGetAddressRange_v2)(&base, &size, p + 4'999'999) == CUDA_SUCCESS);
  CHECK(base == p);
  CHECK(size == 5'000'000);

  CUcontext context = nullptr, current = nullptr;
  REQUIRE(PROGRAM(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
  unsigned type = 0, managed = 9, mapped = 0;
  int ordinal = -5;
  unsigned long long id = 0, handle_types = 9;
  CUdeviceptr device_pointer = 0, start_address = 0;
  void* host = &host;
  std::size_t range = 0;
  CUpointer_attribute names[] = {
      CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,         CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_MAPPED,         CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,      CU_POINTER_ATTRIBUTE_BUFFER_ID,
      CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,    CU_POINTER_ATTRIBUTE_RANGE_SIZE,
      CU_POINTER_ATTRIBUTE_HOST_POINTER,   CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES};
  void* values[] = {&context,        &type,          &managed, &mapped, &ordinal,     &id,
                    &device_pointer, &start_address, &range,   &host,   &handle_types};
  REQUIRE(PROGRAM(cuPointerGetAttributes)(11, names, values, p + 100) == CUDA_SUCCESS);
  CHECK(context == current);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  CHECK(managed == 0);
  CHECK(mapped == 1);
  CHECK(ordinal == 0);
  CHECK(id != 0);
  CHECK(device_pointer == p + 100);
  CHECK(start_address == p);
  CHECK(range == 5'000'000);
  CHECK(host == nullptr);
  CHECK(handle_types == 0);
  CHECK(PROGRAM(cuPointerGetAttribute)(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p) == CUDA_ERROR_INVALID_VALUE);
  unsigned long long same = 0;
  CHECK(PROGRAM(cuPointerGetAttribute)(&same, CU_POINTER_ATTRIBUTE_BUFFER_ID, p + 7) == CUDA_SUCCESS);
  CHECK(same == id);

  free(p);
  CHECK(PROGRAM(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p) == CUDA_ERROR_INVALID_VALUE);
  CHECK(PROGRAM(cuMemGetAddressRange_v2)(&base, &size, p) != CUDA_SUCCESS);
  type = 77;
  CUpointer_attribute one = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* out = &type;
  CHECK(PROGRAM(cuPointerGetAttributes)(1, &one, &out, p) == CUDA_SUCCESS);
  CHECK(type == 0);
}

TEST_CASE("shim: free memory drops by what is allocated and comes back") {
  start();
  const std::size_t before = free_bytes();
  const CUdeviceptr a = allocate(100 * kMiB), b = allocate(4 * kMiB);
  CHECK(before - free_bytes() == 104 * kMiB);
  free(a);
  free(b);
  CHECK(free_bytes() == before);
}

TEST_CASE("shim: without a current context the driver's error comes") {
  start();
  REQUIRE(PROGRAM(cuCtxSetCurrent)(nullptr) == CUDA_SUCCESS);
  CUdeviceptr p = 0;
  CHECK(PROGRAM(cuMemAlloc_v2)(&p, 100) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("shim: a block can be freed from another thread and with another context current, but not without any") {
  start();
  const CUdeviceptr p = allocate(kMiB), q = allocate(kMiB);
  CUresult without = CUDA_SUCCESS, first = CUDA_ERROR_UNKNOWN, second = CUDA_ERROR_UNKNOWN;
  CUcontext context = nullptr;
  REQUIRE(PROGRAM(cuCtxGetCurrent)(&context) == CUDA_SUCCESS);
  std::thread([&] {
    without = PROGRAM(cuMemFree_v2)(p);
    (void)PROGRAM(cuCtxSetCurrent)(context);
    first = PROGRAM(cuMemFree_v2)(p);
    start(1);
    second = PROGRAM(cuMemFree_v2)(q);
  }).join();
  CHECK(without == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(first == CUDA_SUCCESS);
  CHECK(second == CUDA_SUCCESS);
}

TEST_CASE("shim: cuMemFree waits for the work that uses the block") {
  start();
  CUstream stream;
  REQUIRE(PROGRAM(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const CUdeviceptr p = allocate(kMiB);
  std::atomic<bool> open{false}, reached{false};
  std::pair<std::atomic<bool>*, std::atomic<bool>*> shared{&open, &reached};
  auto wait = [](void* data) {
    auto* flags = static_cast<std::pair<std::atomic<bool>*, std::atomic<bool>*>*>(data);
    while (!*flags->first) std::this_thread::yield();
    *flags->second = true;
  };
  REQUIRE(PROGRAM(cuLaunchHostFunc)(stream, wait, &shared) == CUDA_SUCCESS);
  REQUIRE(PROGRAM(cuMemsetD8Async)(p, 5, kMiB, stream) == CUDA_SUCCESS);
  std::atomic<bool> freed{false}, in_order{false};
  CUcontext context = nullptr;
  REQUIRE(PROGRAM(cuCtxGetCurrent)(&context) == CUDA_SUCCESS);
  std::thread other([&] {
    (void)PROGRAM(cuCtxSetCurrent)(context);
    const CUresult result = PROGRAM(cuMemFree_v2)(p);
    in_order = reached && result == CUDA_SUCCESS;
    freed = true;
  });
  // The free must not be over while the stream is held. (A short look; the order itself is checked by `in_order`.)
  for (int i = 0; i < 200 && !freed; ++i) std::this_thread::yield();
  CHECK_FALSE(freed);
  open = true;
  other.join();
  CHECK(in_order);
  REQUIRE(PROGRAM(cuStreamDestroy_v2)(stream) == CUDA_SUCCESS);
}

TEST_CASE("shim: in a capture allocation and free behave as natively, and the graph still works") {
  start();
  CUstream stream;
  REQUIRE(PROGRAM(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const CUdeviceptr p = allocate(4096);
  CUdeviceptr q = 0;
  CUgraph graph = nullptr;

  REQUIRE(PROGRAM(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  CHECK(PROGRAM(cuMemAlloc_v2)(&q, 100) != CUDA_SUCCESS);
  CHECK(PROGRAM(cuStreamEndCapture)(stream, &graph) != CUDA_SUCCESS);

  REQUIRE(PROGRAM(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  REQUIRE(PROGRAM(cuMemsetD8Async)(p, 3, 4096, stream) == CUDA_SUCCESS);
  CHECK(PROGRAM(cuMemAlloc_v2)(&q, 50 * kMiB) == CUDA_SUCCESS);
  CHECK(PROGRAM(cuMemFree_v2)(q) == CUDA_SUCCESS);
  CHECK(PROGRAM(cuMemFree_v2)(q) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(PROGRAM(cuStreamEndCapture)(stream, &graph) == CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  REQUIRE(PROGRAM(cuGraphInstantiateWithFlags)(&executable, graph, 0) == CUDA_SUCCESS);
  REQUIRE(PROGRAM(cuGraphLaunch)(executable, stream) == CUDA_SUCCESS);
  REQUIRE(PROGRAM(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  unsigned char byte = 0;
  REQUIRE(PROGRAM(cuMemcpyDtoH_v2)(&byte, p + 4095, 1) == CUDA_SUCCESS);
  CHECK(byte == 3);
  free(p);
  (void)PROGRAM(cuGraphExecDestroy)(executable);
  (void)PROGRAM(cuGraphDestroy)(graph);
  (void)PROGRAM(cuStreamDestroy_v2)(stream);
  forget_misuse();
}

// Ten times as much as the device has: what is freed must come back each time.
void allocate_and_free_in_turn() {
  for (int i = 0; i < 250; ++i) free(allocate(1024 * kMiB));
}

TEST_CASE("shim: a block freed in a capture is reused after it, and what is allocated in a capture at once") {
  start();
  CUstream stream;
  REQUIRE(PROGRAM(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const CUdeviceptr p = allocate(50 * kMiB);
  REQUIRE(PROGRAM(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  REQUIRE(PROGRAM(cuMemFree_v2)(p) == CUDA_SUCCESS);
  CHECK(PROGRAM(cuMemFree_v2)(p) == CUDA_ERROR_INVALID_VALUE);
  allocate_and_free_in_turn();
  CUgraph graph = nullptr;
  REQUIRE(PROGRAM(cuStreamEndCapture)(stream, &graph) == CUDA_SUCCESS);
  const CUdeviceptr again = allocate(50 * kMiB);
  CHECK(again == p);
  free(again);
  (void)PROGRAM(cuGraphDestroy)(graph);
  (void)PROGRAM(cuStreamDestroy_v2)(stream);
  forget_misuse();
}

TEST_CASE("shim: a capture of another thread does not keep this thread's memory") {
  start();
  CUcontext context = nullptr;
  REQUIRE(PROGRAM(cuCtxGetCurrent)(&context) == CUDA_SUCCESS);
  std::atomic<bool> begun{false}, done{false};
  std::thread other([&] {
    (void)PROGRAM(cuCtxSetCurrent)(context);
    CUstream stream;
    CUgraph graph = nullptr;
    (void)PROGRAM(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    (void)PROGRAM(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    begun = true;
    while (!done) std::this_thread::yield();
    (void)PROGRAM(cuStreamEndCapture)(stream, &graph);
    (void)PROGRAM(cuGraphDestroy)(graph);
    (void)PROGRAM(cuStreamDestroy_v2)(stream);
  });
  while (!begun) std::this_thread::yield();
  allocate_and_free_in_turn();
  done = true;
  other.join();
}

TEST_CASE("shim: an abandoned capture costs no memory and ends with its context") {
  for (const bool destroy : {true, false}) {
    start(1);
    CUstream stream;
    REQUIRE(PROGRAM(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(PROGRAM(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    if (destroy) (void)PROGRAM(cuStreamDestroy_v2)(stream);  // drivers may refuse it
    allocate_and_free_in_turn();
    REQUIRE(PROGRAM(cuDevicePrimaryCtxReset_v2)(1) == CUDA_SUCCESS);
    start(1);
    const CUdeviceptr p = allocate(50 * kMiB);
    CHECK(ours(p));  // not native, as it would be in a capture
    free(p);
  }
  forget_misuse();
}

TEST_CASE("shim: a free that is refused leaves the block to the program") {
  start();
  CUstream stream;
  REQUIRE(PROGRAM(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const CUdeviceptr p = allocate(kMiB);
  REQUIRE(PROGRAM(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  CHECK(PROGRAM(cuMemFree_v2)(p) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  CHECK(PROGRAM(cuStreamEndCapture)(stream, &graph) != CUDA_SUCCESS);
  CHECK(PROGRAM(cuMemFree_v2)(p) == CUDA_SUCCESS);
  (void)PROGRAM(cuStreamDestroy_v2)(stream);
  forget_misuse();
}

TEST_CASE("shim: after a fault every free fails as natively, nothing is reused, and a reset makes all well") {
  start();
  const std::size_t before = free_bytes();
  const CUdeviceptr held = allocate(50 * kMiB), freed = allocate(50 * kMiB);
  free(freed);  // idle: what is allocated next may come from it
  CUdeviceptr nowhere = 0;
  REQUIRE(PROGRAM(cuMemAddressReserve)(&nowhere, 2 * kMiB, 0, 0, 0) == CUDA_SUCCESS);
  CUmemGenericAllocationHandle chunk = 0;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  REQUIRE(PROGRAM(cuMemCreate)(&chunk, 2 * kMiB, &properties, 0) == CUDA_SUCCESS);
  REQUIRE(PROGRAM(cuMemMap)(nowhere, 2 * kMiB, 0, chunk, 0) == CUDA_SUCCESS);
  // Mapped, and no access allowed: what touches it faults.
  CHECK(PROGRAM(cuMemsetD8Async)(nowhere, 1, 64, nullptr) == CUDA_SUCCESS);
  CHECK(PROGRAM(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(PROGRAM(cuMemFree_v2)(held) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(PROGRAM(cuMemFree_v2)(held) == CUDA_ERROR_ILLEGAL_ADDRESS);  // still the program's
  CUdeviceptr other = 0;
  if (PROGRAM(cuMemAlloc_v2)(&other, 50 * kMiB) == CUDA_SUCCESS) CHECK(other != held);
  (void)PROGRAM(cuMemUnmap)(nowhere, 2 * kMiB);
  (void)PROGRAM(cuMemRelease)(chunk);
  (void)PROGRAM(cuMemAddressFree)(nowhere, 2 * kMiB);
  REQUIRE(PROGRAM(cuDevicePrimaryCtxReset_v2)(0) == CUDA_SUCCESS);
  start();
  CHECK(PROGRAM(cuMemFree_v2)(held) == CUDA_ERROR_INVALID_VALUE);  // went with its context
  CHECK(free_bytes() == before);
  const CUdeviceptr after = allocate(50 * kMiB);
  CHECK(PROGRAM(cuMemsetD8_v2)(after, 3, 50 * kMiB) == CUDA_SUCCESS);
  unsigned char byte = 0;
  CHECK(PROGRAM(cuMemcpyDtoH_v2)(&byte, after + 50 * kMiB - 1, 1) == CUDA_SUCCESS);
  CHECK(byte == 3);
  free(after);
  forget_misuse();
}

// Run alone, with SIM_FAIL making the driver refuse the first synchronisation: as when a capture begins at that moment.
TEST_CASE("shim: a free whose synchronisation is refused can be tried again", "[.refused]") {
  start();
  const CUdeviceptr p = allocate(50 * kMiB);
  REQUIRE(PROGRAM(cuMemsetD8_v2)(p, 7, 50 * kMiB) == CUDA_SUCCESS);
  REQUIRE(PROGRAM(cuMemFree_v2)(p) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(allocate(50 * kMiB) != p);
  unsigned char byte = 0;
  CHECK(PROGRAM(cuMemcpyDtoH_v2)(&byte, p, 1) == CUDA_SUCCESS);
  CHECK(byte == 7);
  CHECK(PROGRAM(cuMemFree_v2)(p) == CUDA_SUCCESS);
}

TEST_CASE("shim: buffer ids are unique over all devices") {
  std::set<unsigned long long> ids;
  for (const int device : {0, 1}) {
    start(device);
    for (int i = 0; i < 5000; ++i) {  // so many that counters of two devices, wherever they stand, meet the same numbers
      unsigned long long id = 0;
      const CUdeviceptr p = allocate(1000);
      REQUIRE(PROGRAM(cuPointerGetAttribute)(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p) == CUDA_SUCCESS);
      REQUIRE(ids.insert(id).second);
      free(p);
    }
  }
}

TEST_CASE("shim: the end of a context is the end of its blocks") {
  start();
  CUcontext primary = nullptr, extra = nullptr;
  REQUIRE(PROGRAM(cuCtxGetCurrent)(&primary) == CUDA_SUCCESS);
  const CUdeviceptr kept = allocate(kMiB);
  REQUIRE(PROGRAM(cuCtxCreate_v2)(&extra, 0, 0) == CUDA_SUCCESS);
  const CUdeviceptr lost = allocate(40 * kMiB);
  REQUIRE(PROGRAM(cuCtxDestroy_v2)(extra) == CUDA_SUCCESS);
  REQUIRE(PROGRAM(cuCtxSetCurrent)(primary) == CUDA_SUCCESS);
  CHECK(PROGRAM(cuMemFree_v2)(lost) == CUDA_ERROR_INVALID_VALUE);
  free(kept);

  const CUdeviceptr before_reset = allocate(3 * kMiB);
  REQUIRE(PROGRAM(cuDevicePrimaryCtxReset_v2)(0) == CUDA_SUCCESS);
  start();
  CHECK(PROGRAM(cuMemFree_v2)(before_reset) == CUDA_ERROR_INVALID_VALUE);
  free(allocate(3 * kMiB));
  forget_misuse();
}

TEST_CASE("shim: devices have heaps of their own, and peers reach across when they are allowed to") {
  start(1);
  const CUdeviceptr there = allocate(kMiB);
  int ordinal = -1;
  REQUIRE(PROGRAM(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there) == CUDA_SUCCESS);
  CHECK(ordinal == 1);
  CUcontext peer;
  REQUIRE(PROGRAM(cuCtxGetCurrent)(&peer) == CUDA_SUCCESS);
  start(0);
  REQUIRE(PROGRAM(cuCtxEnablePeerAccess)(peer, 0) == CUDA_SUCCESS);
  CHECK(PROGRAM(cuMemsetD8_v2)(there, 9, kMiB) == CUDA_SUCCESS);
  CHECK(PROGRAM(cuCtxSynchronize)() == CUDA_SUCCESS);  // a free waits for the block's own device only
  unsigned long long flags = 0;
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = 0;
  CHECK(PROGRAM(cuMemGetAccess)(&flags, &location, there) == CUDA_SUCCESS);
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  REQUIRE(PROGRAM(cuCtxDisablePeerAccess)(peer) == CUDA_SUCCESS);
  CHECK(PROGRAM(cuMemGetAccess)(&flags, &location, there) == CUDA_SUCCESS);
  CHECK(flags == 0);
  free(there);
}

TEST_CASE("shim: threads allocate, fill, check and free at once") {
  start();
  CUcontext context;
  REQUIRE(PROGRAM(cuCtxGetCurrent)(&context) == CUDA_SUCCESS);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      if (PROGRAM(cuCtxSetCurrent)(context) != CUDA_SUCCESS) return void(++wrong);
      std::uint64_t seed = 88172645463325252ull + t;
      for (unsigned i = 0; i < 150; ++i) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        const std::size_t words = 1 + seed % (i % 10 == 0 ? 1'500'000 : 2000);
        const unsigned mark = t << 24 | i;
        CUdeviceptr p = 0;
        unsigned first = 0, last = 0;
        if (PROGRAM(cuMemAlloc_v2)(&p, words * 4) != CUDA_SUCCESS || PROGRAM(cuMemsetD32_v2)(p, mark, words) != CUDA_SUCCESS ||
            PROGRAM(cuMemcpyDtoH_v2)(&first, p, 4) != CUDA_SUCCESS ||
            PROGRAM(cuMemcpyDtoH_v2)(&last, p + (words - 1) * 4, 4) != CUDA_SUCCESS || first != mark || last != mark ||
            PROGRAM(cuMemFree_v2)(p) != CUDA_SUCCESS)
          ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}
