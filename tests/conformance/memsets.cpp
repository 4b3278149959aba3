// Memsets: widths, and when they return behind a stream that waits.
#include "tests/conformance/gate.hpp"
#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

constexpr std::size_t kSize = 64 * kKiB;

constexpr int plan(Kind kind, bool async, bool late) { return static_cast<int>(kind) | int{async} << 4 | int{late} << 5; }

void memset_behind_gate(int parameter) {
  const auto kind = static_cast<Kind>(parameter & 15);
  const bool async = (parameter & 16) != 0, late = (parameter & 32) != 0;
  primary();
  const CUdeviceptr target = memory_of(kind, kSize);
  fill(target, 0, kSize);
  Gate& gate = make_gate();
  const CUstream waiting = stream(CU_STREAM_DEFAULT);
  close_gate(gate, waiting);
  const CUresult result = async ? cuMemsetD8Async(target, 0x5c, kSize, waiting) : cuMemsetD8(target, 0x5c, kSize);
  const bool returned_late = gate.is_open();
  expect_result(result, {CUDA_SUCCESS}, async ? "cuMemsetD8Async" : "cuMemsetD8");
  expect_that(returned_late == late, late ? "returned after the gate opened" : "returned before the gate opened");
  gate.open();
  NEED(cuCtxSynchronize());
  expect_that(holds(target, 0x5c, kSize), "bytes right");
}

#define MEMSET(form, kind, late, source, text) \
  { "memsets." #form "." #kind, text, source, memset_behind_gate, plan(Kind::kind, form, late) }
constexpr bool sync = false, async = true;

// Two elements of the pattern, at the begin of the block and at the end of the set part.
void expect_pattern(CUdeviceptr block, const void* pattern, std::size_t element, std::size_t bytes) {
  char read[kSize];
  NEED(cuMemcpyDtoH(read, block, kSize));
  bool same = true;
  for (std::size_t i = 0; i < bytes; i += element) same &= __builtin_memcmp(read + i, pattern, element) == 0;
  expect_that(same, "pattern");
  expect_that(all_bytes(read + bytes, 0, kSize - bytes), "nothing beyond");
}

CUdeviceptr cleared_block() {
  primary();
  const CUdeviceptr block = device_memory(kSize);
  fill(block, 0, kSize);
  return block;
}

constexpr Case cases[] = {
    MEMSET(sync, device, false, documented, "a synchronous memset of device memory does not wait"),
    MEMSET(sync, pinned, true, documented, "a synchronous memset of pinned memory returns when done"),
    MEMSET(sync, host_backed, true, assumed, "like pinned memory: returns when done"),
    MEMSET(async, device, false, documented, "an Async memset does not wait"),
    MEMSET(async, pinned, false, documented, "an Async memset does not wait"),
    MEMSET(async, host_backed, false, documented, "an Async memset does not wait"),

    {"memsets.d16", "cuMemsetD16 sets N elements of 2 bytes", documented,
     [](int) {
       const CUdeviceptr block = cleared_block();
       const unsigned short pattern = 0x1234;
       EXPECT(CUDA_SUCCESS, cuMemsetD16(block, pattern, 100));
       expect_pattern(block, &pattern, 2, 200);
     }},
    {"memsets.d32", "cuMemsetD32 sets N elements of 4 bytes", documented,
     [](int) {
       const CUdeviceptr block = cleared_block();
       const unsigned pattern = 0x12345678;
       EXPECT(CUDA_SUCCESS, cuMemsetD32(block, pattern, 100));
       expect_pattern(block, &pattern, 4, 400);
     }},
    {"memsets.d16_misaligned", "cuMemsetD16 of an odd address: INVALID_VALUE", documented,
     [](int) { EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(cleared_block() + 1, 7, 4)); }},
    {"memsets.d32_misaligned", "cuMemsetD32 of an address that is no multiple of 4: INVALID_VALUE", documented,
     [](int) { EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(cleared_block() + 2, 7, 4)); }},
    {"memsets.d2d8", "cuMemsetD2D8 sets rows and leaves what lies between", documented,
     [](int) {
       const CUdeviceptr block = cleared_block();
       EXPECT(CUDA_SUCCESS, cuMemsetD2D8(block, 512, 0x44, 100, 3));
       NEED(cuCtxSynchronize());
       expect_that(holds(block, 0x44, 100) && holds(block + 1024, 0x44, 100), "rows");
       expect_that(holds(block + 100, 0, 412) && holds(block + 1536, 0, 100), "between and behind them");
     }},
    {"memsets.d2d32_async", "cuMemsetD2D32Async sets rows in stream order", documented,
     [](int) {
       const CUdeviceptr block = cleared_block();
       const CUstream s = stream();
       EXPECT(CUDA_SUCCESS, cuMemsetD2D32Async(block, 512, 0x07070707, 25, 3, s));
       NEED(cuStreamSynchronize(s));
       expect_that(holds(block + 512, 7, 100) && holds(block + 612, 0, 412), "rows");
     }},
    {"memsets.beyond_block", "a memset beyond the end of a block: INVALID_VALUE", assumed,
     [](int) {
       primary();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(device_memory(2 * kMiB), 1, 64 * kMiB));
     }},
    {"memsets.across_mappings", "a memset over adjacent mappings sets all", documented,
     [](int) {
       primary();
       const Mapping m = map_new(3);
       EXPECT(CUDA_SUCCESS, cuMemsetD8(m.address, 0x0f, m.size));
       NEED(cuCtxSynchronize());
       expect_that(holds(m.address, 0x0f, m.size), "bytes");
     }},
    {"memsets.unknown_pointer", "a memset of an unknown address: INVALID_VALUE, nothing sticky", assumed,
     [](int) {
       primary();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(0x1000, 1, 16));
       EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
     }},
};

}  // namespace
constinit const CaseList memset_cases = list_of(cases);
}  // namespace vramd::conformance
