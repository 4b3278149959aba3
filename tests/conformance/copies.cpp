// When copies return behind a stream that waits, and whether their bytes are right.
#include "tests/conformance/gate.hpp"
#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

constexpr std::size_t kSize = 192 * kKiB;  // beyond what a driver may embed in its commands

enum Returns { early, late, either };
// One copy, packed into a case's parameter.
constexpr int plan(Kind from, Kind to, bool async, Returns returns) {
  return static_cast<int>(from) | static_cast<int>(to) << 4 | int{async} << 8 | returns << 12;
}

void copy_behind_gate(int parameter) {
  const auto from = static_cast<Kind>(parameter & 15);
  const auto to = static_cast<Kind>(parameter >> 4 & 15);
  const bool async = (parameter >> 8 & 15) != 0;
  const auto wanted = static_cast<Returns>(parameter >> 12);
  primary();
  const CUdeviceptr source = memory_of(from, kSize), destination = memory_of(to, kSize);
  fill(source, 0xa5, kSize);
  fill(destination, 0x00, kSize);
  Gate& gate = make_gate();
  const CUstream waiting = stream(CU_STREAM_DEFAULT);  // a synchronous copy is ordered behind it too
  close_gate(gate, waiting);
  const CUresult result = async ? cuMemcpyAsync(destination, source, kSize, waiting) : cuMemcpy(destination, source, kSize);
  const bool returned_late = gate.is_open();
  // What a pageable source held at the return is what arrives.
  if (from == Kind::pageable) fill(source, 0x00, kSize);
  expect_result(result, {CUDA_SUCCESS}, async ? "cuMemcpyAsync" : "cuMemcpy");
  if (wanted == either) {
    observe("returned %s the gate opened", returned_late ? "after" : "before");
  } else if (wanted == late) {
    expect_that(returned_late, "returned after the gate opened");
  } else {
    expect_that(!returned_late, "returned before the gate opened");
  }
  const bool in_place = to == Kind::pageable || to == Kind::pinned || to == Kind::host_backed;
  if (returned_late && in_place && from != Kind::pageable) {
    expect_that(all_bytes(pointer_to(destination), 0xa5, kSize), "bytes in place at the return");
  }
  gate.open();
  NEED(cuCtxSynchronize());
  expect_that(holds(destination, 0xa5, kSize), "bytes right");
}

#define SYNC(from, to, returns, source, text) \
  { "copies.sync." #from "_to_" #to, text, source, copy_behind_gate, plan(Kind::from, Kind::to, false, returns) }
#define ASYNC(from, to, returns, source, text) \
  { "copies.async." #from "_to_" #to, text, source, copy_behind_gate, plan(Kind::from, Kind::to, true, returns) }

constexpr char kDone[] = "returns when complete";
constexpr char kAtOnce[] = "does not wait";
constexpr char kLikePinned[] = "like pinned memory: returns when complete";
constexpr char kLikePinnedAtOnce[] = "like pinned memory: does not wait";

constexpr Case cases[] = {
    SYNC(device, device, early, documented, kAtOnce),
    SYNC(device, host_backed, late, assumed, kLikePinned),
    SYNC(device, pinned, late, documented, kDone),
    SYNC(device, pageable, late, documented, kDone),
    SYNC(host_backed, device, late, assumed, kLikePinned),
    SYNC(host_backed, host_backed, late, assumed, kLikePinned),
    SYNC(host_backed, pinned, late, assumed, kLikePinned),
    SYNC(host_backed, pageable, late, assumed, kLikePinned),
    SYNC(pinned, device, late, documented, kDone),
    SYNC(pinned, host_backed, late, assumed, kLikePinned),
    SYNC(pinned, pinned, late, documented, kDone),
    SYNC(pinned, pageable, late, documented, kDone),
    SYNC(pageable, device, late, documented, "waits for the stream, returns once the source may be changed"),
    SYNC(pageable, host_backed, late, assumed, kLikePinned),
    SYNC(pageable, pinned, late, documented, kDone),
    SYNC(pageable, pageable, late, documented, kDone),

    ASYNC(device, device, early, documented, kAtOnce),
    ASYNC(device, host_backed, early, assumed, kLikePinnedAtOnce),
    ASYNC(device, pinned, early, documented, kAtOnce),
    ASYNC(device, pageable, late, assumed, "returns when complete (it might)"),
    ASYNC(host_backed, device, early, assumed, kLikePinnedAtOnce),
    ASYNC(host_backed, host_backed, late, assumed, kLikePinned),
    ASYNC(host_backed, pinned, late, assumed, kLikePinned),
    ASYNC(host_backed, pageable, late, assumed, kLikePinned),
    ASYNC(pinned, device, early, documented, kAtOnce),
    ASYNC(pinned, host_backed, late, assumed, kLikePinned),
    ASYNC(pinned, pinned, late, documented, kDone),
    ASYNC(pinned, pageable, late, documented, kDone),
    ASYNC(pageable, device, either, assumed, "may wait; the source may be changed at the return"),
    ASYNC(pageable, host_backed, late, assumed, kLikePinned),
    ASYNC(pageable, pinned, late, documented, kDone),
    ASYNC(pageable, pageable, late, documented, kDone),

    {"copies.async_pinned_source_read_late", "an Async copy reads a pinned source when the stream gets there", documented,
     [](int) {
       primary();
       char* const source = pinned_memory(kSize);
       const CUdeviceptr destination = device_memory(kSize);
       fill(address_of(source), 1, kSize);
       Gate& gate = make_gate();
       const CUstream s = stream();
       close_gate(gate, s);
       NEED(cuMemcpyHtoDAsync(destination, source, kSize, s));
       expect_that(!gate.is_open(), "returned before the gate opened");
       __builtin_memset(source, 2, kSize);
       gate.open();
       NEED(cuStreamSynchronize(s));
       expect_that(holds(destination, 2, kSize), "the later bytes arrive");
     }},
    {"copies.unknown_device_pointer", "a device-typed copy of an unknown address: INVALID_VALUE, nothing sticky", assumed,
     [](int) {
       primary();
       char* const bytes = pageable_memory(kSize);
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(bytes, 0x1000, 16));
       EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
     }},
    {"copies.beyond_block", "a copy beyond the end of a block: INVALID_VALUE", assumed,
     [](int) {
       primary();
       const std::size_t size = 2 * kMiB;
       char* const bytes = pageable_memory(4 * size);
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(bytes, device_memory(size), 4 * size));
     }},
    {"copies.zero_bytes", "a copy of 0 bytes succeeds", assumed,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(256);
       EXPECT(CUDA_SUCCESS, cuMemcpyDtoD(block, block, 0));
     }},
    {"copies.across_mappings", "a copy over adjacent mappings works like one over a block", documented,
     [](int) {
       primary();
       const Mapping m = map_new(3);
       const CUdeviceptr block = device_memory(m.size);
       fill(m.address, 0x66, m.size);
       EXPECT(CUDA_SUCCESS, cuMemcpyDtoD(block, m.address, m.size));
       NEED(cuCtxSynchronize());
       expect_that(holds(block, 0x66, m.size), "bytes");
     }},
    {"copies.two_dimensional", "cuMemcpy2D copies rows and leaves what lies between", documented,
     [](int) {
       primary();
       const CUdeviceptr device = device_memory(1024);
       fill(device, 0, 1024);
       char* const host = pageable_memory(4096);
       __builtin_memset(host, 9, 4096);
       CUDA_MEMCPY2D copy{};
       copy.srcMemoryType = CU_MEMORYTYPE_HOST;
       copy.srcHost = host;
       copy.srcPitch = 64;
       copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
       copy.dstDevice = device;
       copy.dstPitch = 128;
       copy.WidthInBytes = 64;
       copy.Height = 4;
       EXPECT(CUDA_SUCCESS, cuMemcpy2D(&copy));
       NEED(cuCtxSynchronize());
       expect_that(holds(device, 9, 64) && holds(device + 3 * 128, 9, 64), "rows");
       expect_that(holds(device + 64, 0, 64) && holds(device + 3 * 128 + 64, 0, 64), "between them");
     }},
    {"copies.peer", "cuMemcpyPeer works without peer access", documented,
     [](int) {
       const CUcontext own = primary();
       const int other = second_device();
       const CUdeviceptr source = device_memory(kSize);
       fill(source, 0x71, kSize);
       CUcontext peer = nullptr;
       NEED(cuDevicePrimaryCtxRetain(&peer, other));
       NEED(cuCtxSetCurrent(peer));
       const CUdeviceptr destination = device_memory(kSize);
       fill(destination, 0, kSize);
       EXPECT(CUDA_SUCCESS, cuMemcpyPeer(destination, peer, source, own, kSize));
       NEED(cuCtxSynchronize());
       expect_that(holds(destination, 0x71, kSize), "bytes");
     }},
};

}  // namespace
constinit const CaseList copy_cases = list_of(cases);
}  // namespace vramd::conformance
