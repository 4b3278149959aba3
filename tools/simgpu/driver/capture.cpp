#include "tools/simgpu/driver/capture.hpp"

#include <algorithm>
#include <utility>

#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/event.hpp"

namespace simgpu {

std::atomic<int> active_captures{0};

namespace {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

// All captures in progress; guarded by capture_mutex().
std::vector<std::shared_ptr<Capture>>& captures() {
  static auto* const instance = new std::vector<std::shared_ptr<Capture>>;
  return *instance;
}

void leave(Stream& origin, const Capture& capture) {
  for (const StreamRef& stream : origin.context.streams()) {
    if (stream->capture.get() == &capture) stream->capture.reset();
  }
  std::erase_if(captures(), [&](const auto& c) { return c.get() == &capture; });
  active_captures.store(static_cast<int>(captures().size()), std::memory_order_release);
}

std::size_t node_count(const Capture& capture) {
  const std::lock_guard lock(capture.graph->mutex);
  return capture.graph->nodes.size();
}

}  // namespace

std::mutex& capture_mutex() {
  static std::mutex* const instance = new std::mutex;
  return *instance;
}

CUresult begin_capture(const StreamRef& stream, CUstreamCaptureMode mode) {
  if (stream->legacy()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::lock_guard lock(capture_mutex());
  if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = next_object_id();
  capture->mode = mode;
  capture->owner = std::this_thread::get_id();
  capture->graph = std::make_shared<Graph>();
  capture->origin = stream.get();
  capture->branches[stream.get()];
  stream->capture = capture;
  captures().push_back(capture);
  active_captures.store(static_cast<int>(captures().size()), std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult end_capture(const StreamRef& stream, std::shared_ptr<Graph>& graph) {
  const std::lock_guard lock(capture_mutex());
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream.get()) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->owner != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  leave(*stream, *capture);
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  for (const auto& [other, branch] : capture->branches) {
    if (other != capture->origin && branch.joined < branch.last_node) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  graph = capture->graph;
  return CUDA_SUCCESS;
}

bool capture_operation(Stream& stream, Operation& operation, CUresult& result) {
  const std::lock_guard lock(capture_mutex());
  if (const auto& capture = stream.capture) {
    if (capture->invalid) {
      result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      return true;
    }
    auto node = std::make_shared<Node>();
    node->type = operation.type;
    node->run = std::move(operation.run);
    const std::lock_guard graph_lock(capture->graph->mutex);
    capture->graph->nodes.push_back(std::move(node));
    capture->branches[&stream].last_node = capture->graph->nodes.size();
    result = CUDA_SUCCESS;
    return true;
  }
  if (!stream.legacy()) return false;
  bool implicit = false;
  for (const StreamRef& other : stream.context.streams()) {
    if (!other->blocking() || !other->capture) continue;
    other->capture->invalid = implicit = true;
  }
  result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  return implicit;
}

bool capture_event_record(Stream& stream, Event& event, CUresult& result) {
  const std::lock_guard lock(capture_mutex());
  event.capture = stream.capture;
  if (!stream.capture) return false;
  event.captured_on = &stream;
  event.captured_at = node_count(*stream.capture);
  result = stream.capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  return true;
}

bool capture_event_wait(const StreamRef& stream, Event& event, CUresult& result) {
  const std::lock_guard lock(capture_mutex());
  const bool of_running_capture = event.capture && std::ranges::count(captures(), event.capture);
  if (!of_running_capture) {
    if (!stream->capture) return false;
    stream->capture->invalid = true;  // a capture can't depend on work outside of it
    result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    return true;
  }
  if (stream->capture && stream->capture != event.capture) {
    stream->capture->invalid = event.capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_MERGE;
    return true;
  }
  stream->capture = event.capture;
  stream->capture->branches[stream.get()];
  if (event.captured_on != stream.get()) {
    Branch& branch = event.capture->branches[event.captured_on];
    branch.joined = std::max(branch.joined, event.captured_at);
  }
  result = event.capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  return true;
}

bool capture_forbids() {
  if (active_captures.load(std::memory_order_acquire) == 0 || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  const std::lock_guard lock(capture_mutex());
  bool forbidden = false;
  for (const auto& capture : captures()) {
    const bool own = capture->owner == std::this_thread::get_id() && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool global = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (own || global) capture->invalid = forbidden = true;
  }
  return forbidden;
}

bool capture_forbids_wait(Stream& stream) {
  if (active_captures.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(capture_mutex());
  if (!stream.capture) return false;
  stream.capture->invalid = true;
  return true;
}

bool is_capturing(const Stream& stream) {
  if (active_captures.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(capture_mutex());
  return stream.capture != nullptr;
}

CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode) { return std::exchange(thread_mode, mode); }

}  // namespace simgpu
