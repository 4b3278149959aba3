// Stream captures in progress. While there is one, nothing may be synchronised, and whether memory may be allocated or freed is
// the driver's to say: allocations are native then, so that their frees are too.
#pragma once

#include <cuda.h>

#include "shim/calls/memory.hpp"

namespace vramd::shim {

// Whether any stream of this process is capturing.
bool capture_in_progress();

// Makes the driver judge whether this thread may allocate or free now, as natively: if not, its error is returned and the
// capture is invalidated by the driver itself. Call only while a capture is in progress.
CUresult judge_memory_call_in_capture();

// For our own driver calls while it is alive: they are allowed although a capture is in progress elsewhere.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver);
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_ = false;
};

// A block that was freed during a capture: it cannot be synchronised now. Kept until free_after_captures().
// False when the host has no memory for the note: the block then stays in limbo for the rest of the process.
bool keep_until_captures_end(Heap& heap, const heap::BlockInfo& block);

// Once no capture is in progress: synchronises and frees what was kept.
void free_after_captures(Memory& memory);

// A context is gone: so are its captures and what was kept of it.
void end_captures_of(const void* context);

}  // namespace vramd::shim
