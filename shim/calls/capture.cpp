#include "shim/calls/capture.hpp"

#include "allocator/base/node_pool.hpp"
#include "shim/hook/driver_library.hpp"
#include "shim/hook/generated/shim_calls.hpp"
#include "shim/hook/process.hpp"

namespace vramd::shim {
namespace {

int captures = 0;  // begun and not ended, by all threads

struct Kept {
  Heap* heap = nullptr;
  heap::BlockInfo block;
  Kept* next = nullptr;
};
Mutex kept_mutex;
Kept* kept_first = nullptr;
alignas(NodePool<Kept>) unsigned char kept_pool_place[sizeof(NodePool<Kept>)];
NodePool<Kept>* kept_pool = nullptr;  // made at the first use, never destroyed

CUresult begun(CUresult result) {
  if (result == CUDA_SUCCESS) __atomic_fetch_add(&captures, 1, __ATOMIC_ACQ_REL);
  return result;
}

// The end of a capture counts however it ends: an invalidated one is over too. Only a stream that was not capturing
// (ILLEGAL_STATE), or another thread's (WRONG_THREAD), leaves the count alone.
CUresult ended(CUresult result) {
  const bool over = result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
                    result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED || result == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (over && __atomic_load_n(&captures, __ATOMIC_ACQUIRE) > 0) __atomic_fetch_sub(&captures, 1, __ATOMIC_ACQ_REL);
  if (Memory* memory = Memory::active()) free_after_captures(*memory);
  return result;
}

}  // namespace

bool capture_in_progress() { return __atomic_load_n(&captures, __ATOMIC_ACQUIRE) > 0; }

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
  MutexLock lock(kept_mutex);
  if (kept_pool == nullptr) kept_pool = new (kept_pool_place) NodePool<Kept>();
  Kept* kept = kept_pool->create();
  if (kept == nullptr) return false;
  *kept = {&heap, block, kept_first};
  kept_first = kept;
  return true;
}

void free_after_captures(Memory& memory) {
  while (!capture_in_progress()) {
    Kept item;
    {
      MutexLock lock(kept_mutex);
      if (kept_first == nullptr) return;
      Kept* first = kept_first;
      item = *first;
      kept_first = first->next;
      kept_pool->destroy(first);
    }
    // A context that is broken or gone never becomes quiet: its block stays in limbo, or was dropped with the context.
    if (memory.synchronize(item.block.context)) item.heap->finish_free(item.block.base);
  }
}

namespace calls {

using hook::Entry;
using hook::real;

CUresult cuStreamBeginCapture(CUstream stream) { return begun(real<Entry::cuStreamBeginCapture>()(stream)); }
CUresult cuStreamBeginCapture_ptsz(CUstream stream) { return begun(real<Entry::cuStreamBeginCapture_ptsz>()(stream)); }
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begun(real<Entry::cuStreamBeginCapture_v2>()(stream, mode));
}
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return begun(real<Entry::cuStreamBeginCapture_v2_ptsz>()(stream, mode));
}
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* data, std::size_t count, CUstreamCaptureMode mode) {
  return begun(real<Entry::cuStreamBeginCaptureToGraph>()(stream, graph, dependencies, data, count, mode));
}
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* data, std::size_t count, CUstreamCaptureMode mode) {
  return begun(real<Entry::cuStreamBeginCaptureToGraph_ptsz>()(stream, graph, dependencies, data, count, mode));
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) { return ended(real<Entry::cuStreamEndCapture>()(stream, graph)); }
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return ended(real<Entry::cuStreamEndCapture_ptsz>()(stream, graph));
}

}  // namespace calls
}  // namespace vramd::shim
