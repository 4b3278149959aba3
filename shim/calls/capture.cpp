#include "shim/calls/capture.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <new>

#include "allocator/base/node_pool.hpp"
#include "shim/hook/driver_library.hpp"
#include "shim/hook/generated/shim_calls.hpp"
#include "shim/hook/process.hpp"

namespace vramd::shim {
namespace {

struct Capture {
  CUstream stream = nullptr;
  long thread = 0;  // of a per-thread default stream, else 0
  CUcontext context = nullptr;
  Capture* next = nullptr;
};
struct Kept {
  Heap* heap = nullptr;
  heap::BlockInfo block;
  Kept* next = nullptr;
};

// Both lists are short: captures are few, and frees in a capture rare.
struct Lists {
  NodePool<Capture> capture_pool;
  NodePool<Kept> kept_pool;
  Capture* captures = nullptr;
  Kept* kept = nullptr;
};

Mutex mutex;
alignas(Lists) unsigned char lists_place[sizeof(Lists)];
Lists* lists = nullptr;  // made at the first use, never destroyed
int capture_count = 0;   // length of the list, read without the lock

Lists& made_lists() {
  if (lists == nullptr) lists = new (lists_place) Lists();
  return *lists;
}

struct StreamName {
  CUstream stream;
  long thread;
};

// `per_thread`: the entry point's flavour, in which the null stream means the thread's own.
StreamName name_of(CUstream stream, bool per_thread) {
  if (per_thread && stream == nullptr) stream = CU_STREAM_PER_THREAD;
  return {stream, stream == CU_STREAM_PER_THREAD ? ::syscall(SYS_gettid) : 0};
}

// Takes out what `chosen` picks; the last one taken is copied to `out`. With the lock held.
template <class Chosen>
bool take_captures(Chosen chosen, Capture* out = nullptr) {
  bool any = false;
  if (lists == nullptr) return any;
  for (Capture** link = &lists->captures; *link != nullptr;) {
    Capture* capture = *link;
    if (!chosen(*capture)) {
      link = &capture->next;
      continue;
    }
    if (out != nullptr) *out = *capture;
    *link = capture->next;
    lists->capture_pool.destroy(capture);
    __atomic_fetch_sub(&capture_count, 1, __ATOMIC_ACQ_REL);
    any = true;
  }
  return any;
}

bool take_capture(StreamName name, Capture* out = nullptr) {
  MutexLock lock(mutex);
  return take_captures([name](const Capture& c) { return c.stream == name.stream && c.thread == name.thread; }, out);
}

void add_capture(const Capture& capture) {
  MutexLock lock(mutex);
  Capture* noted = made_lists().capture_pool.create();
  if (noted == nullptr) return log(LogLevel::warn, "no host memory: a stream capture is not noticed");
  *noted = capture;
  noted->next = lists->captures;
  lists->captures = noted;
  __atomic_fetch_add(&capture_count, 1, __ATOMIC_ACQ_REL);
}

CUresult begun(CUresult result, CUstream stream, bool per_thread) {
  if (result != CUDA_SUCCESS || Memory::active() == nullptr) return result;
  const StreamName name = name_of(stream, per_thread);
  Capture capture{name.stream, name.thread, nullptr, nullptr};
  const CUresult asked = name.thread != 0 ? hook::real<hook::Entry::cuCtxGetCurrent>()(&capture.context)
                                          : hook::real<hook::Entry::cuStreamGetCtx>()(stream, &capture.context);
  if (asked != CUDA_SUCCESS) capture.context = nullptr;
  add_capture(capture);
  return result;
}

// A capture is over however it ends, an invalidated one too. Whether it was this stream's to end, the driver knows.
CUresult ended(CUresult result, CUstream stream, bool per_thread) {
  Memory* memory = Memory::active();
  if (memory == nullptr) return result;
  const StreamName name = name_of(stream, per_thread);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const bool over =
      result == CUDA_SUCCESS || (hook::real<hook::Entry::cuStreamIsCapturing>()(name.stream, &status) == CUDA_SUCCESS &&
                                 status == CU_STREAM_CAPTURE_STATUS_NONE);
  if (over) (void)take_capture(name);
  free_after_captures(*memory);
  return result;
}

// Destroying a stream ends its capture. Forgotten before the call: after it the stream's handle may be another's.
template <class Call>
CUresult destroyed(CUstream stream, Call call) {
  Memory* memory = capture_in_progress() ? Memory::active() : nullptr;
  if (memory == nullptr) return call(stream);
  Capture capture;
  const bool was_capturing = take_capture(name_of(stream, false), &capture);
  const CUresult result = call(stream);
  if (was_capturing && result != CUDA_SUCCESS) add_capture(capture);
  free_after_captures(*memory);
  return result;
}

}  // namespace

bool capture_in_progress() { return __atomic_load_n(&capture_count, __ATOMIC_ACQUIRE) > 0; }

CUresult judge_memory_call_in_capture() {
  CUdeviceptr probe = 0;
  const CUresult result = hook::real<hook::Entry::cuMemAlloc_v2>()(&probe, 512);
  // Out of memory is no judgement on the capture: the call was allowed.
  if (result == CUDA_SUCCESS) (void)hook::real<hook::Entry::cuMemFree_v2>()(probe);
  return result == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : result;
}

RelaxedCapture::RelaxedCapture(const Driver& driver) : driver_(driver) {
  if (capture_in_progress()) exchanged_ = driver_.thread_exchange_stream_capture_mode(&mode_) == CUDA_SUCCESS;
}

RelaxedCapture::~RelaxedCapture() {
  if (exchanged_) (void)driver_.thread_exchange_stream_capture_mode(&mode_);
}

bool keep_until_captures_end(Heap& heap, const heap::BlockInfo& block) {
  MutexLock lock(mutex);
  Kept* kept = made_lists().kept_pool.create();
  if (kept == nullptr) return false;
  *kept = {&heap, block, lists->kept};
  lists->kept = kept;
  return true;
}

void free_after_captures(Memory& memory) {
  while (!capture_in_progress()) {
    Kept item;
    {
      MutexLock lock(mutex);
      if (lists == nullptr || lists->kept == nullptr) return;
      Kept* first = lists->kept;
      item = *first;
      lists->kept = first->next;
      lists->kept_pool.destroy(first);
    }
    hook::OwnCall own;
    // A context that is broken never becomes quiet: its block stays in limbo.
    if (memory.synchronize(item.block.context)) item.heap->finish_free(item.block);
  }
}

void end_captures_of(const void* context) {
  MutexLock lock(mutex);
  (void)take_captures([context](const Capture& capture) { return capture.context == context; });
  if (lists == nullptr) return;
  for (Kept** link = &lists->kept; *link != nullptr;) {
    Kept* kept = *link;
    if (kept->block.context != context) {
      link = &kept->next;
      continue;
    }
    *link = kept->next;
    lists->kept_pool.destroy(kept);
  }
}

namespace calls {

using hook::Entry;
using hook::real;

CUresult cuStreamBeginCapture(CUstream stream) { return begun(real<Entry::cuStreamBeginCapture>()(stream), stream, false); }
CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
  return begun(real<Entry::cuStreamBeginCapture_ptsz>()(stream), stream, true);
}
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begun(real<Entry::cuStreamBeginCapture_v2>()(stream, mode), stream, false);
}
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return begun(real<Entry::cuStreamBeginCapture_v2_ptsz>()(stream, mode), stream, true);
}
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* data, std::size_t count, CUstreamCaptureMode mode) {
  return begun(real<Entry::cuStreamBeginCaptureToGraph>()(stream, graph, dependencies, data, count, mode), stream, false);
}
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* data, std::size_t count, CUstreamCaptureMode mode) {
  return begun(real<Entry::cuStreamBeginCaptureToGraph_ptsz>()(stream, graph, dependencies, data, count, mode), stream, true);
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return ended(real<Entry::cuStreamEndCapture>()(stream, graph), stream, false);
}
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return ended(real<Entry::cuStreamEndCapture_ptsz>()(stream, graph), stream, true);
}
#if CUDA_VERSION >= 13020
CUresult cuStreamBeginCaptureToCig(CUstream stream, CUstreamCigCaptureParams* parameters) {
  return begun(real<Entry::cuStreamBeginCaptureToCig>()(stream, parameters), stream, false);
}
CUresult cuStreamBeginCaptureToCig_ptsz(CUstream stream, CUstreamCigCaptureParams* parameters) {
  return begun(real<Entry::cuStreamBeginCaptureToCig_ptsz>()(stream, parameters), stream, true);
}
CUresult cuStreamEndCaptureToCig(CUstream stream) {
  return ended(real<Entry::cuStreamEndCaptureToCig>()(stream), stream, false);
}
CUresult cuStreamEndCaptureToCig_ptsz(CUstream stream) {
  return ended(real<Entry::cuStreamEndCaptureToCig_ptsz>()(stream), stream, true);
}
#endif
#if CUDA_VERSION >= 13030
CUresult cuStreamBeginRecaptureToGraph(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
                                       CUgraphRecaptureCallback callback, void* data) {
  return begun(real<Entry::cuStreamBeginRecaptureToGraph>()(stream, mode, graph, callback, data), stream, false);
}
CUresult cuStreamBeginRecaptureToGraph_ptsz(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
                                            CUgraphRecaptureCallback callback, void* data) {
  return begun(real<Entry::cuStreamBeginRecaptureToGraph_ptsz>()(stream, mode, graph, callback, data), stream, true);
}
#endif
CUresult cuStreamDestroy(CUstream stream) { return destroyed(stream, real<Entry::cuStreamDestroy>()); }
CUresult cuStreamDestroy_v2(CUstream stream) { return destroyed(stream, real<Entry::cuStreamDestroy_v2>()); }

}  // namespace calls
}  // namespace vramd::shim
