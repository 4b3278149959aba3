// Events: query, order, time.
#include "tests/conformance/gate.hpp"
#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

constexpr Case cases[] = {
    {"events.query", "NOT_READY until the stream gets there, SUCCESS from then on", documented,
     [](int) {
       primary();
       const CUstream s = stream();
       const CUevent e = event();
       EXPECT(CUDA_SUCCESS, cuEventQuery(e));  // never recorded
       Gate& gate = make_gate();
       close_gate(gate, s);
       EXPECT(CUDA_SUCCESS, cuEventRecord(e, s));
       EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(e));
       gate.open();
       EXPECT(CUDA_SUCCESS, cuEventSynchronize(e));
       EXPECT(CUDA_SUCCESS, cuEventQuery(e));
     }},
    {"events.wait_orders_streams", "a stream that waits for an event runs after what was before it", documented,
     [](int) {
       primary();
       const CUstream one = stream(), two = stream();
       const CUevent e = event();
       Gate& gate = make_gate();
       close_gate(gate, one);
       NEED(cuEventRecord(e, one));
       EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(two, e, 0));
       EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(two));
       gate.open();
       EXPECT(CUDA_SUCCESS, cuStreamSynchronize(two));
     }},
    {"events.wait_takes_last_record", "a later record does not change an earlier wait", documented,
     [](int) {
       primary();
       const CUstream one = stream(), two = stream();
       const CUevent e = event();
       NEED(cuEventRecord(e, one));
       EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(two, e, 0));
       Gate& gate = make_gate();
       close_gate(gate, one);
       NEED(cuEventRecord(e, one));
       EXPECT(CUDA_SUCCESS, cuStreamSynchronize(two));
       expect_that(!gate.is_open(), "before the gate opened");
     }},
    {"events.wait_unrecorded", "waiting for an event that was never recorded is no wait", documented,
     [](int) {
       primary();
       const CUstream s = stream();
       EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(s, event(), 0));
       EXPECT(CUDA_SUCCESS, cuStreamSynchronize(s));
     }},
    {"events.destroy_pending", "a pending event can be destroyed; who waits for it still does", documented,
     [](int) {
       primary();
       const CUstream one = stream(), two = stream();
       const CUevent e = event();
       Gate& gate = make_gate();
       close_gate(gate, one);
       NEED(cuEventRecord(e, one));
       NEED(cuStreamWaitEvent(two, e, 0));
       EXPECT(CUDA_SUCCESS, cuEventDestroy(e));
       expect_that(!gate.is_open(), "destroy did not wait");
       EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(two));
       gate.open();
       EXPECT(CUDA_SUCCESS, cuStreamSynchronize(two));
     }},
    {"events.elapsed_time", "elapsed time is not negative and covers what lies between", documented,
     [](int) {
       primary();
       const CUstream s = stream();
       const CUevent one = event(CU_EVENT_DEFAULT), two = event(CU_EVENT_DEFAULT);
       NEED(cuEventRecord(one, s));
       NEED(cuLaunchHostFunc(
           s, [](void*) { sleep_millis(20); }, nullptr));
       NEED(cuEventRecord(two, s));
       NEED(cuEventSynchronize(two));
       float millis = -1;
       EXPECT(CUDA_SUCCESS, cuEventElapsedTime(&millis, one, two));
       observe("%.2f ms", static_cast<double>(millis));
       expect_that(millis >= 15 && millis < 10000, "at least 15 ms");
     }},
    {"events.elapsed_pending", "elapsed time of a pending event: NOT_READY", documented,
     [](int) {
       primary();
       const CUstream s = stream();
       const CUevent one = event(CU_EVENT_DEFAULT), two = event(CU_EVENT_DEFAULT);
       NEED(cuEventRecord(one, s));
       Gate& gate = make_gate();
       close_gate(gate, s);
       NEED(cuEventRecord(two, s));
       float millis = 0;
       EXPECT(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&millis, one, two));
     }},
    {"events.elapsed_without_timing", "elapsed time of an event without timing: INVALID_HANDLE", documented,
     [](int) {
       primary();
       const CUevent one = event(), two = event();
       NEED(cuEventRecord(one, nullptr));
       NEED(cuEventRecord(two, nullptr));
       NEED(cuCtxSynchronize());
       float millis = 0;
       EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&millis, one, two));
     }},
    {"events.interprocess_needs_no_timing", "INTERPROCESS without DISABLE_TIMING: INVALID_VALUE", documented,
     [](int) {
       primary();
       CUevent e = nullptr;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&e, CU_EVENT_INTERPROCESS));
     }},
    {"events.record_in_other_context", "recording in a stream of another context: INVALID_HANDLE", documented,
     [](int) {
       primary();
       const CUevent e = event();
       CUcontext other = nullptr;
       NEED(cuCtxCreate_v2(&other, 0, chosen_device));
       EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(e, stream()));
     }},
};

}  // namespace
constinit const CaseList event_cases = list_of(cases);
}  // namespace vramd::conformance
