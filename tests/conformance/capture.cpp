// What a stream capture allows, forbids and ends with.
#include "tests/conformance/gate.hpp"
#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

CUstream capturing(CUstreamCaptureMode mode, unsigned flags = CU_STREAM_NON_BLOCKING) {
  primary();
  const CUstream s = stream(flags);
  NEED(cuStreamBeginCapture(s, mode));
  return s;
}

void expect_status(CUstream s, CUstreamCaptureStatus wanted, const char* text) {
  CUstreamCaptureStatus status{};
  NEED(cuStreamIsCapturing(s, &status));
  expect_that(status == wanted, text);
}

void expect_invalidated(CUstream s) {
  CUgraph graph = nullptr;
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
  expect_that(graph == nullptr, "no graph");
  expect_status(s, CU_STREAM_CAPTURE_STATUS_NONE, "no longer capturing");
}

void expect_intact(CUstream s) {
  CUgraph graph = nullptr;
  EXPECT(CUDA_SUCCESS, cuStreamEndCapture(s, &graph));
  expect_that(graph != nullptr, "a graph");
}

void alloc_in(int mode) {
  const CUstream s = capturing(static_cast<CUstreamCaptureMode>(mode));
  CUdeviceptr block = 0;
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
    EXPECT(CUDA_SUCCESS, cuMemAlloc(&block, kMiB));
    expect_intact(s);
  } else {
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&block, kMiB));
    expect_invalidated(s);
  }
}

void free_in(int mode) {
  primary();
  const CUdeviceptr block = device_memory(kMiB);
  const CUstream s = capturing(static_cast<CUstreamCaptureMode>(mode));
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
    EXPECT(CUDA_SUCCESS, cuMemFree(block));
    expect_intact(s);
  } else {
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemFree(block));
    expect_invalidated(s);
  }
}

// An allocation in another thread than the capturing one.
void alloc_elsewhere(int mode) {
  const CUcontext context = primary();
  const CUstream s = capturing(static_cast<CUstreamCaptureMode>(mode));
  const bool forbidden = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
  in_thread([&] {
    NEED(cuCtxSetCurrent(context));
    CUdeviceptr block = 0;
    expect_result(cuMemAlloc(&block, kMiB), {forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS}, "cuMemAlloc");
  });
  forbidden ? expect_invalidated(s) : expect_intact(s);
}

constexpr int kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL, kLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
              kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

constexpr Case cases[] = {
    {"capture.alloc_global", "cuMemAlloc in a global capture: refused, the capture is invalid", assumed, alloc_in, kGlobal},
    {"capture.alloc_thread_local", "cuMemAlloc in a thread-local capture: the same", assumed, alloc_in, kLocal},
    {"capture.alloc_relaxed", "cuMemAlloc in a relaxed capture works", documented, alloc_in, kRelaxed},
    {"capture.free_global", "cuMemFree in a global capture: refused, the capture is invalid", assumed, free_in, kGlobal},
    {"capture.free_thread_local", "cuMemFree in a thread-local capture: the same", assumed, free_in, kLocal},
    {"capture.free_relaxed", "cuMemFree in a relaxed capture works", assumed, free_in, kRelaxed},
    {"capture.alloc_other_thread_global", "a global capture forbids cuMemAlloc to other threads", assumed, alloc_elsewhere,
     kGlobal},
    {"capture.alloc_other_thread_local", "a thread-local capture does not", documented, alloc_elsewhere, kLocal},
    {"capture.alloc_other_thread_relaxed", "nor does a relaxed one", documented, alloc_elsewhere, kRelaxed},
    {"capture.vmm_calls", "create, map, set-access and unmap are allowed in a global capture", assumed,
     [](int) {
       primary();
       const std::size_t granule = granularity(device_prop());
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_GLOBAL);
       const CUmemAllocationProp prop = device_prop();
       CUmemGenericAllocationHandle handle = 0;
       EXPECT(CUDA_SUCCESS, cuMemCreate(&handle, granule, &prop, 0));
       const CUdeviceptr address = reserve(granule);
       EXPECT(CUDA_SUCCESS, cuMemMap(address, granule, 0, handle, 0));
       const CUmemAccessDesc access = device_access();
       EXPECT(CUDA_SUCCESS, cuMemSetAccess(address, granule, &access, 1));
       EXPECT(CUDA_SUCCESS, cuMemUnmap(address, granule));
       expect_intact(s);
     }},
    {"capture.synchronize_stream", "synchronising a capturing stream invalidates", documented,
     [](int) {
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
       EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s));
       expect_status(s, CU_STREAM_CAPTURE_STATUS_INVALIDATED, "invalidated");
       expect_invalidated(s);
     }},
    {"capture.query_stream", "querying a capturing stream is refused and invalidates", documented,
     [](int) {
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
       EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(s));
       expect_invalidated(s);
     }},
    {"capture.synchronize_context", "cuCtxSynchronize during a global capture is refused and invalidates", documented,
     [](int) {
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_GLOBAL);
       EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
       expect_invalidated(s);
     }},
    {"capture.event_of_capture", "querying an event recorded in a capture: CAPTURED_EVENT", documented,
     [](int) {
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
       const CUevent e = event();
       NEED(cuEventRecord(e, s));
       EXPECT(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(e));
     }},
    {"capture.work_is_not_done", "captured work does not run", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(256);
       fill(block, 1, 256);
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
       EXPECT(CUDA_SUCCESS, cuMemsetD8Async(block, 2, 256, s));
       expect_intact(s);
       expect_that(holds(block, 1, 256), "bytes as before");
     }},
    {"capture.legacy_use", "work in the legacy stream while a blocking stream captures: CAPTURE_IMPLICIT", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(256);
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_DEFAULT);
       EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD8Async(block, 1, 256, CU_STREAM_LEGACY));
       expect_invalidated(s);
     }},
    {"capture.legacy_beside_non_blocking", "work in the legacy stream beside a non-blocking capture works", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(256);
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
       EXPECT(CUDA_SUCCESS, cuMemsetD8Async(block, 1, 256, CU_STREAM_LEGACY));
       expect_intact(s);
     }},
    {"capture.of_legacy", "the legacy stream cannot be captured", documented,
     [](int) {
       primary();
       EXPECT_ONE_OF(cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED),
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_INVALID_VALUE);
     }},
    {"capture.begin_twice", "beginning again on a capturing stream: ILLEGAL_STATE", assumed,
     [](int) {
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
       EXPECT_ONE_OF(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_ILLEGAL_STATE,
                     CUDA_ERROR_INVALID_VALUE);
     }},
    {"capture.end_without_begin", "ending what was not begun: ILLEGAL_STATE", assumed,
     [](int) {
       primary();
       CUgraph graph = nullptr;
       EXPECT_ONE_OF(cuStreamEndCapture(stream(), &graph), CUDA_ERROR_ILLEGAL_STATE, CUDA_ERROR_INVALID_VALUE);
     }},
    {"capture.forks_by_event", "an event takes another stream into the capture, and back", documented,
     [](int) {
       const CUstream one = capturing(CU_STREAM_CAPTURE_MODE_RELAXED), two = stream();
       const CUdeviceptr block = device_memory(256);
       const CUevent out = event(), back = event();
       NEED(cuEventRecord(out, one));
       EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(two, out, 0));
       expect_status(two, CU_STREAM_CAPTURE_STATUS_ACTIVE, "the other stream captures");
       NEED(cuMemsetD8Async(block, 1, 256, two));
       NEED(cuEventRecord(back, two));
       EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(one, back, 0));
       expect_intact(one);
       expect_status(two, CU_STREAM_CAPTURE_STATUS_NONE, "the other one no longer");
     }},
    {"capture.unjoined", "ending with a stream that was not joined: CAPTURE_UNJOINED", documented,
     [](int) {
       const CUstream one = capturing(CU_STREAM_CAPTURE_MODE_RELAXED), two = stream();
       const CUdeviceptr block = device_memory(256);
       const CUevent out = event();
       NEED(cuEventRecord(out, one));
       NEED(cuStreamWaitEvent(two, out, 0));
       NEED(cuMemsetD8Async(block, 1, 256, two));
       CUgraph graph = nullptr;
       EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(one, &graph));
     }},
    {"capture.end_from_wrong_stream", "ending in a stream that joined later: CAPTURE_UNMATCHED", documented,
     [](int) {
       const CUstream one = capturing(CU_STREAM_CAPTURE_MODE_RELAXED), two = stream();
       const CUevent out = event();
       NEED(cuEventRecord(out, one));
       NEED(cuStreamWaitEvent(two, out, 0));
       CUgraph graph = nullptr;
       EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(two, &graph));
     }},
    {"capture.end_from_wrong_thread", "a thread-local capture ended by another thread: CAPTURE_WRONG_THREAD", documented,
     [](int) {
       const CUcontext context = primary();
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
       in_thread([&] {
         NEED(cuCtxSetCurrent(context));
         CUgraph graph = nullptr;
         EXPECT(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, cuStreamEndCapture(s, &graph));
       });
     }},
    {"capture.merge", "joining two captures: CAPTURE_MERGE", documented,
     [](int) {
       const CUstream one = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
       const CUstream two = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
       const CUevent e = event();
       NEED(cuEventRecord(e, one));
       EXPECT(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(two, e, 0));
     }},
    {"capture.isolation", "waiting for an event from outside the capture: CAPTURE_ISOLATION", documented,
     [](int) {
       primary();
       const CUevent e = event();
       NEED(cuEventRecord(e, stream()));
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
       EXPECT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(s, e, 0));
     }},
    {"capture.exchange_mode", "the exchange gives back the thread's old mode; a relaxed thread may allocate", documented,
     [](int) {
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_GLOBAL);
       CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
       EXPECT(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
       expect_that(mode == CU_STREAM_CAPTURE_MODE_GLOBAL, "global before");
       CUdeviceptr block = 0;
       EXPECT(CUDA_SUCCESS, cuMemAlloc(&block, kMiB));
       EXPECT(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
       expect_that(mode == CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed between");
       expect_intact(s);
     }},
    {"capture.info", "an active capture has an id and a graph", documented,
     [](int) {
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
       CUstreamCaptureStatus status{};
       cuuint64_t id = 0;
       CUgraph graph = nullptr;
       EXPECT(CUDA_SUCCESS, cuStreamGetCaptureInfo_v2(s, &status, &id, &graph, nullptr, nullptr));
       expect_that(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id != 0 && graph != nullptr, "as said");
     }},
    {"capture.free_async_of_outside", "cuMemFreeAsync of memory from before the capture: INVALID_VALUE", assumed,
     [](int) {
       primary();
       if (!device_attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) not_available("no pools");
       CUdeviceptr block = 0;
       const CUstream before = stream();
       NEED(cuMemAllocAsync(&block, kMiB, before));
       NEED(cuStreamSynchronize(before));
       const CUstream s = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(block, s));
     }},
};

}  // namespace
constinit const CaseList capture_cases = list_of(cases);
}  // namespace vramd::conformance
