// The life of contexts: a session begins with cuInit, and blocks end with the context they were allocated in.
#include "shim/calls/memory.hpp"
#include "shim/hook/driver_library.hpp"
#include "shim/hook/generated/shim_calls.hpp"
#include "shim/hook/process.hpp"

namespace vramd::shim::calls {
namespace {

using hook::Entry;
using hook::real;

// The device's primary context if it is active, else nullptr.
CUcontext primary_context(CUdevice device) {
  unsigned int flags = 0;
  int active = 0;
  if (real<Entry::cuDevicePrimaryCtxGetState>()(device, &flags, &active) != CUDA_SUCCESS || active == 0) return nullptr;
  CUcontext context = nullptr;
  if (real<Entry::cuDevicePrimaryCtxRetain>()(&context, device) != CUDA_SUCCESS) return nullptr;
  (void)real<Entry::cuDevicePrimaryCtxRelease_v2>()(device);
  return context;
}

// Blocks go after the driver's call: then no work of the context can be in flight.
template <class Call>
CUresult end_primary(CUdevice device, bool always, Call call) {
  Memory* memory = Memory::active();
  if (memory == nullptr) return call();
  hook::OwnCall own;
  CUcontext context = primary_context(device);
  const Memory::Youngest last = memory->youngest();
  const CUresult result = call();
  if (result == CUDA_SUCCESS && context != nullptr && (always || primary_context(device) == nullptr))
    memory->drop_context(context, last);
  return result;
}

CUresult change_peer(CUresult result, CUcontext peer, bool allowed) {
  Memory* memory = result == CUDA_SUCCESS ? Memory::active() : nullptr;
  if (memory == nullptr) return result;
  hook::OwnCall own;
  const int here = memory->current_device();
  if (memory->driver().ctx_push_current(peer) != CUDA_SUCCESS) return result;
  const int there = memory->current_device();
  CUcontext popped = nullptr;
  (void)memory->driver().ctx_pop_current(&popped);
  Heap* heap = memory->heap(there);
  if (heap == nullptr || here < 0 || here == there) return result;
  // The current context gets at the memory of the peer's device.
  if (auto done = heap->set_peer(here, allowed); !done) {
    log(LogLevel::warn, "peer access of device %d to device %d: %s failed with CUresult %d", here, there, done.error().what,
        done.error().detail);
    return to_result(done.error());
  }
  return result;
}

}  // namespace

CUresult cuInit(unsigned int flags) {
  const CUresult result = real<Entry::cuInit>()(flags);
  if (result == CUDA_SUCCESS && !hook::passes_through()) Memory::start();
  return result;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return end_primary(device, true, [device] { return real<Entry::cuDevicePrimaryCtxReset>()(device); });
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return end_primary(device, true, [device] { return real<Entry::cuDevicePrimaryCtxReset_v2>()(device); });
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return end_primary(device, false, [device] { return real<Entry::cuDevicePrimaryCtxRelease>()(device); });
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return end_primary(device, false, [device] { return real<Entry::cuDevicePrimaryCtxRelease_v2>()(device); });
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  Memory* memory = Memory::active();
  if (memory == nullptr || context == nullptr) return real<Entry::cuCtxDestroy_v2>()(context);
  hook::OwnCall own;
  const Memory::Youngest last = memory->youngest();
  const CUresult result = real<Entry::cuCtxDestroy_v2>()(context);
  if (result == CUDA_SUCCESS) memory->drop_context(context, last);
  return result;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  return change_peer(real<Entry::cuCtxEnablePeerAccess>()(peer, flags), peer, true);
}
CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  return change_peer(real<Entry::cuCtxDisablePeerAccess>()(peer), peer, false);
}

}  // namespace vramd::shim::calls
