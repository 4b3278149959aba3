// Contexts: current, retained, reset, destroyed.
#include "tests/conformance/gate.hpp"
#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

int active() {
  unsigned flags = 0;
  int state = -1;
  NEED(cuDevicePrimaryCtxGetState(chosen_device, &flags, &state));
  return state;
}

CUcontext created() {
  start();
  CUcontext context = nullptr;
  NEED(cuCtxCreate_v2(&context, 0, chosen_device));
  return context;
}

constexpr Case cases[] = {
    {"contexts.retain_counts", "the primary context is active until released as often as retained", documented,
     [](int) {
       start();
       CUcontext one = nullptr, two = nullptr;
       expect_that(active() == 0, "not active at first");
       NEED(cuDevicePrimaryCtxRetain(&one, chosen_device));
       NEED(cuDevicePrimaryCtxRetain(&two, chosen_device));
       expect_that(one == two && active() == 1, "one active context");
       EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxRelease(chosen_device));
       expect_that(active() == 1, "active after one release");
       EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxRelease(chosen_device));
       expect_that(active() == 0, "not active after two");
     }},
    {"contexts.release_too_often", "releasing once too often: INVALID_CONTEXT", assumed,
     [](int) {
       start();
       EXPECT_ONE_OF(cuDevicePrimaryCtxRelease(chosen_device), CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_VALUE);
     }},
    {"contexts.retain_is_not_current", "retaining does not make current", documented,
     [](int) {
       start();
       CUcontext context = nullptr, current = nullptr;
       NEED(cuDevicePrimaryCtxRetain(&context, chosen_device));
       EXPECT(CUDA_SUCCESS, cuCtxGetCurrent(&current));
       expect_that(current == nullptr, "none");
     }},
    {"contexts.current_per_thread", "the current context belongs to the thread", documented,
     [](int) {
       primary();
       CUcontext current = reinterpret_cast<CUcontext>(8);
       in_thread([&] { NEED(cuCtxGetCurrent(&current)); });
       expect_that(current == nullptr, "none in a new thread");
     }},
    {"contexts.push_pop", "push and pop form a stack", documented,
     [](int) {
       const CUcontext first = primary();
       const CUcontext second = created();
       CUcontext current = nullptr, popped = nullptr;
       NEED(cuCtxGetCurrent(&current));
       expect_that(current == second, "created is current");
       EXPECT(CUDA_SUCCESS, cuCtxPopCurrent(&popped));
       NEED(cuCtxGetCurrent(&current));
       expect_that(popped == second && current == first, "back to the first");
     }},
    {"contexts.reset_frees", "cuDevicePrimaryCtxReset frees the allocations", documented,
     [](int) {
       primary();
       device_memory(128 * kMiB);
       const std::size_t before = free_bytes();
       EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxReset(chosen_device));
       CUcontext context = nullptr;
       NEED(cuDevicePrimaryCtxRetain(&context, chosen_device));
       NEED(cuCtxSetCurrent(context));
       expect_that(free_bytes() + 16 * kMiB >= before + 128 * kMiB,
                   "free memory rose by 128 MiB, but for what a context takes");
     }},
    {"contexts.reset_forgets_blocks", "a block from before a reset cannot be freed", assumed,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(32 * kMiB);
       NEED(cuDevicePrimaryCtxReset(chosen_device));
       primary();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(block));
     }},
    {"contexts.reset_keeps_chunks", "chunks and mappings survive a reset", assumed,
     [](int) {
       primary();
       const Mapping m = map_new();
       NEED(cuDevicePrimaryCtxReset(chosen_device));
       primary();
       CUmemGenericAllocationHandle handle = 0;
       EXPECT(CUDA_SUCCESS, cuMemRetainAllocationHandle(&handle, pointer_to(m.address)));
     }},
    {"contexts.destroy_frees", "cuCtxDestroy frees the context's memory", documented,
     [](int) {
       primary();
       device_memory(256);
       const std::size_t before = free_bytes();
       const CUcontext context = created();
       device_memory(128 * kMiB);
       NEED(cuCtxSynchronize());
       const std::size_t during = free_bytes();
       EXPECT(CUDA_SUCCESS, cuCtxDestroy(context));
       primary();
       expect_that(during + 128 * kMiB <= before, "taken");
       expect_that(free_bytes() >= during + 128 * kMiB, "given back");
     }},
    {"contexts.destroyed_is_not_current", "destroying the current context pops it", documented,
     [](int) {
       const CUcontext first = primary();
       const CUcontext context = created();
       NEED(cuCtxDestroy(context));
       CUcontext current = nullptr;
       EXPECT(CUDA_SUCCESS, cuCtxGetCurrent(&current));
       expect_that(current == first, "the one before is current");
     }},
    {"contexts.use_after_destroy", "making a destroyed context current: CONTEXT_IS_DESTROYED or INVALID_CONTEXT", assumed,
     [](int) {
       const CUcontext context = created();
       NEED(cuCtxDestroy(context));
       EXPECT_ONE_OF(cuCtxSetCurrent(context), CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_INVALID_CONTEXT);
     }},
    {"contexts.stream_after_destroy", "a stream of a destroyed context is refused", assumed,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(256);
       const CUcontext context = created();
       const CUstream s = stream();
       NEED(cuCtxDestroy(context));
       EXPECT_ONE_OF(cuMemsetD8Async(block, 1, 256, s), CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_CONTEXT_IS_DESTROYED,
                     CUDA_ERROR_INVALID_CONTEXT);
     }},
    {"contexts.stream_of_another", "a stream of another context than the current one takes work", assumed,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(256);
       const CUstream s = stream();
       created();
       EXPECT(CUDA_SUCCESS, cuMemsetD8Async(block, 7, 256, s));
       EXPECT(CUDA_SUCCESS, cuStreamSynchronize(s));
     }},
    {"contexts.memory_is_shared", "a block of one context is reachable from another on its device", assumed,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(4096);
       created();
       EXPECT(CUDA_SUCCESS, cuMemsetD8(block, 0x51, 4096));
       NEED(cuCtxSynchronize());
       expect_that(holds(block, 0x51, 4096), "bytes");
     }},
    {"contexts.device", "cuCtxGetDevice is the context's device", documented,
     [](int) {
       primary();
       CUdevice device = -1;
       EXPECT(CUDA_SUCCESS, cuCtxGetDevice(&device));
       expect_that(device == chosen_device, "the chosen one");
     }},
    {"contexts.peer_twice", "enabling peer access twice: PEER_ACCESS_ALREADY_ENABLED", documented,
     [](int) {
       const CUcontext own = primary();
       const int other = second_device();
       int can = 0;
       NEED(cuDeviceCanAccessPeer(&can, chosen_device, other));
       if (!can) not_available("no path between the devices");
       CUcontext peer = nullptr;
       NEED(cuDevicePrimaryCtxRetain(&peer, other));
       NEED(cuCtxSetCurrent(own));
       EXPECT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(peer));
       EXPECT(CUDA_SUCCESS, cuCtxEnablePeerAccess(peer, 0));
       EXPECT(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(peer, 0));
       EXPECT(CUDA_SUCCESS, cuCtxDisablePeerAccess(peer));
     }},
};

}  // namespace
constinit const CaseList context_cases = list_of(cases);
}  // namespace vramd::conformance
