// Order within and between streams, waits and writes, host functions.
#include "tests/conformance/gate.hpp"
#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

void set_flag(void* flag) { static_cast<std::atomic<int>*>(flag)->store(1); }

// Does work in the stream `second` wait for a gate in the stream `first`?
bool waits(CUstream first, CUstream second) {
  static std::atomic<int> reached{0};
  const CUdeviceptr block = device_memory(256);
  NEED(cuCtxSynchronize());
  Gate& gate = make_gate();
  close_gate(gate, first);
  NEED(cuMemsetD8Async(block, 1, 256, second));
  NEED(cuLaunchHostFunc(second, set_flag, &reached));
  sleep_millis(60);
  const bool before = reached.load() != 0;
  need_that(!gate.is_open(), "the gate stayed closed for 60 ms");
  gate.open();
  NEED(cuCtxSynchronize());
  need_that(reached.load() != 0, "the work ran in the end");
  return !before;
}

void ordered(CUstream first, CUstream second, bool wanted) {
  const bool waited = waits(first, second);
  expect_that(waited == wanted, wanted ? "waits" : "does not wait");
}

constexpr Case cases[] = {
    {"streams.same_stream", "work in one stream runs in order", documented,
     [](int) {
       primary();
       const CUstream s = stream();
       ordered(s, s, true);
     }},
    {"streams.two_streams", "blocking streams do not wait for each other", documented,
     [](int) {
       primary();
       const CUstream one = stream(CU_STREAM_DEFAULT), two = stream(CU_STREAM_DEFAULT);
       ordered(one, two, false);
     }},
    {"streams.legacy_waits_for_blocking", "the legacy stream waits for blocking streams", documented,
     [](int) {
       primary();
       ordered(stream(CU_STREAM_DEFAULT), CU_STREAM_LEGACY, true);
     }},
    {"streams.blocking_waits_for_legacy", "blocking streams wait for the legacy stream", documented,
     [](int) {
       primary();
       const CUstream s = stream(CU_STREAM_DEFAULT);
       ordered(CU_STREAM_LEGACY, s, true);
     }},
    {"streams.legacy_ignores_non_blocking", "the legacy stream does not wait for non-blocking streams", documented,
     [](int) {
       primary();
       ordered(stream(), CU_STREAM_LEGACY, false);
     }},
    {"streams.non_blocking_ignores_legacy", "non-blocking streams do not wait for the legacy stream", documented,
     [](int) {
       primary();
       const CUstream s = stream();
       ordered(CU_STREAM_LEGACY, s, false);
     }},
    {"streams.per_thread_waits_for_legacy", "the per-thread default stream waits for the legacy stream", documented,
     [](int) {
       primary();
       ordered(CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, true);
     }},
    {"streams.per_thread_of_two_threads", "the per-thread default streams of two threads are apart", documented,
     [](int) {
       const CUcontext context = primary();
       const CUdeviceptr block = device_memory(256);
       Gate& gate = make_gate();
       close_gate(gate, CU_STREAM_PER_THREAD);
       in_thread([&] {
         NEED(cuCtxSetCurrent(context));
         NEED(cuMemsetD8Async(block, 1, 256, CU_STREAM_PER_THREAD));
         EXPECT(CUDA_SUCCESS, cuStreamSynchronize(CU_STREAM_PER_THREAD));
       });
       expect_that(!gate.is_open(), "the other thread's did not wait");
       EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_PER_THREAD));
     }},
    {"streams.zero_is_legacy", "stream 0 is the legacy default stream", documented,
     [](int) {
       primary();
       ordered(stream(CU_STREAM_DEFAULT), nullptr, true);
     }},
    {"streams.query", "cuStreamQuery: NOT_READY while work is pending, SUCCESS afterwards", documented,
     [](int) {
       primary();
       const CUstream s = stream();
       EXPECT(CUDA_SUCCESS, cuStreamQuery(s));
       Gate& gate = make_gate();
       close_gate(gate, s);
       EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
       gate.open();
       NEED(cuStreamSynchronize(s));
       EXPECT(CUDA_SUCCESS, cuStreamQuery(s));
     }},
    {"streams.synchronize_waits", "cuStreamSynchronize returns when the work is done", documented,
     [](int) {
       primary();
       const CUstream s = stream();
       Gate& gate = make_gate();
       close_gate(gate, s);
       EXPECT(CUDA_SUCCESS, cuStreamSynchronize(s));
       expect_that(gate.is_open(), "after the gate opened");
     }},
    {"streams.context_synchronize_waits", "cuCtxSynchronize waits for non-blocking streams too", documented,
     [](int) {
       primary();
       Gate& gate = make_gate();
       close_gate(gate, stream());
       EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
       expect_that(gate.is_open(), "after the gate opened");
     }},
    {"streams.destroy_with_work", "destroying a stream returns at once, its work completes", documented,
     [](int) {
       primary();
       const CUstream s = stream();
       const CUdeviceptr block = device_memory(256);
       fill(block, 0, 256);
       Gate& gate = make_gate();
       close_gate(gate, s);
       NEED(cuMemsetD8Async(block, 0x55, 256, s));
       EXPECT(CUDA_SUCCESS, cuStreamDestroy(s));
       expect_that(!gate.is_open(), "returned before the gate opened");
       gate.open();
       NEED(cuCtxSynchronize());
       expect_that(holds(block, 0x55, 256), "work done");
     }},
    {"streams.write_value", "cuStreamWriteValue32 writes in stream order", documented,
     [](int) {
       primary();
       char* const word = pinned_memory(8);
       *reinterpret_cast<unsigned*>(word) = 0;
       const CUstream s = stream();
       Gate& gate = make_gate();
       close_gate(gate, s);
       const CUresult result = cuStreamWriteValue32(s, address_of(word), 77, CU_STREAM_WRITE_VALUE_DEFAULT);
       if (result == CUDA_ERROR_NOT_SUPPORTED) not_available("not supported");
       need(result, "cuStreamWriteValue32");
       expect_that(__atomic_load_n(reinterpret_cast<unsigned*>(word), __ATOMIC_SEQ_CST) == 0, "not before");
       gate.open();
       NEED(cuStreamSynchronize(s));
       expect_that(__atomic_load_n(reinterpret_cast<unsigned*>(word), __ATOMIC_SEQ_CST) == 77, "written");
     }},
    {"streams.wait_value_of_other_stream", "a wait is satisfied by another stream's write", documented,
     [](int) {
       primary();
       const CUdeviceptr word = device_memory(256);
       fill(word, 0, 256);
       const CUstream one = stream(), two = stream();
       const CUresult result = cuStreamWaitValue32(one, word, 5, CU_STREAM_WAIT_VALUE_EQ);
       if (result == CUDA_ERROR_NOT_SUPPORTED) not_available("not supported");
       need(result, "cuStreamWaitValue32");
       EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(one));
       EXPECT(CUDA_SUCCESS, cuStreamWriteValue32(two, word, 5, CU_STREAM_WRITE_VALUE_DEFAULT));
       EXPECT(CUDA_SUCCESS, cuStreamSynchronize(one));
     }},
    {"streams.host_function_order", "a host function runs after earlier and before later work", documented,
     [](int) {
       primary();
       struct State {
         char* bytes;
         int seen;
       } state{pinned_memory(256), -1};
       state.bytes[0] = 0;
       const CUstream s = stream();
       NEED(cuMemsetD8Async(address_of(state.bytes), 3, 1, s));
       NEED(cuLaunchHostFunc(
           s, [](void* p) { static_cast<State*>(p)->seen = static_cast<State*>(p)->bytes[0]; }, &state));
       NEED(cuMemsetD8Async(address_of(state.bytes), 9, 1, s));
       NEED(cuStreamSynchronize(s));
       observe("seen %d", state.seen);
       expect_that(state.seen == 3 && state.bytes[0] == 9, "in order");
     }},
    {"streams.host_function_holds_stream", "work behind a host function waits for its end", documented,
     [](int) {
       primary();
       const CUstream s = stream();
       static std::atomic<int> ended{0};
       NEED(cuLaunchHostFunc(
           s,
           [](void*) {
             sleep_millis(50);
             ended.store(1);
           },
           nullptr));
       NEED(cuStreamSynchronize(s));
       expect_that(ended.load() == 1, "ended");
     }},
    {"streams.callback", "a callback gets its stream, SUCCESS and its argument", documented,
     [](int) {
       primary();
       struct State {
         CUstream stream;
         CUresult status;
       } state{nullptr, CUDA_ERROR_UNKNOWN};
       const CUstream s = stream();
       EXPECT(CUDA_SUCCESS, cuStreamAddCallback(
                                s,
                                [](CUstream in, CUresult status, void* p) {
                                  *static_cast<State*>(p) = {in, status};
                                },
                                &state, 0));
       NEED(cuStreamSynchronize(s));
       expect_that(state.stream == s && state.status == CUDA_SUCCESS, "as said");
     }},
    {"streams.flags", "cuStreamGetFlags and cuStreamGetPriority give back what was asked for", documented,
     [](int) {
       primary();
       unsigned flags = 99;
       EXPECT(CUDA_SUCCESS, cuStreamGetFlags(stream(CU_STREAM_NON_BLOCKING), &flags));
       expect_that(flags == CU_STREAM_NON_BLOCKING, "non-blocking");
       int least = 0, greatest = 0, priority = 99;
       NEED(cuCtxGetStreamPriorityRange(&least, &greatest));
       CUstream s = nullptr;
       NEED(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, greatest));
       EXPECT(CUDA_SUCCESS, cuStreamGetPriority(s, &priority));
       expect_that(priority == greatest, "priority");
     }},
    {"streams.unknown_flags", "unknown flags: INVALID_VALUE", documented,
     [](int) {
       primary();
       CUstream s = nullptr;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&s, 0x80));
     }},
    {"streams.context", "cuStreamGetCtx is the context in which it was created", documented,
     [](int) {
       const CUcontext context = primary();
       CUcontext got = nullptr;
       EXPECT(CUDA_SUCCESS, cuStreamGetCtx(stream(), &got));
       expect_that(got == context, "the primary context");
     }},
    {"streams.free_waits", "cuMemFree waits for pending work of the block's stream", assumed,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(kMiB);
       const CUstream s = stream();
       Gate& gate = make_gate();
       close_gate(gate, s);
       NEED(cuMemsetD8Async(block, 1, kMiB, s));
       EXPECT(CUDA_SUCCESS, cuMemFree(block));
       expect_that(gate.is_open(), "returned after the gate opened");
       EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
     }},
};

}  // namespace
constinit const CaseList stream_cases = list_of(cases);
}  // namespace vramd::conformance
