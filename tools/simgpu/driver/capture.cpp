#include "tools/simgpu/driver/capture.hpp"

#include <algorithm>
#include <utility>

#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/event.hpp"
#include "tools/simgpu/driver/log.hpp"

namespace simgpu {

std::atomic<int> active_captures{0};

namespace {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

// All captures in progress; guarded by capture_mutex().
std::vector<std::shared_ptr<Capture>>& captures() {
  static auto* const instance = new std::vector<std::shared_ptr<Capture>>;
  return *instance;
}

void leave(Capture& capture) {
  for (const StreamRef& stream : std::exchange(capture.members, {})) {
    if (stream->capture.get() == &capture) stream->capture.reset();
  }
  std::erase_if(captures(), [&](const auto& c) { return c.get() == &capture; });
  active_captures.store(static_cast<int>(captures().size()), std::memory_order_release);
}

void add_missing(std::vector<Node*>& nodes, const std::vector<Node*>& more) {
  for (Node* const node : more) {
    if (!std::ranges::count(nodes, node)) nodes.push_back(node);
  }
}

}  // namespace

std::mutex& capture_mutex() {
  static std::mutex* const instance = new std::mutex;
  return *instance;
}

CUresult begin_capture(const StreamRef& stream, CUstreamCaptureMode mode, GraphRef graph, std::vector<Node*> dependencies) {
  if (stream->legacy()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::lock_guard lock(capture_mutex());
  if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = next_object_id();
  capture->mode = mode;
  capture->owner = std::this_thread::get_id();
  capture->graph = graph ? std::move(graph) : std::make_shared<Graph>();
  capture->origin = stream.get();
  capture->branches[stream.get()] = std::move(dependencies);
  capture->members.push_back(stream);
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
  leave(*capture);
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  {
    const std::lock_guard graph_lock(capture->graph->mutex);
    for (Node* const leaf : capture->graph->leaves()) {
      const bool captured = std::ranges::count(capture->captured, leaf) != 0;
      if (captured && !std::ranges::count(capture->branches[stream.get()], leaf)) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
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
    if (!operation.work) {  // it can't be a node
      capture->invalid = true;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
      return true;
    }
    const std::lock_guard graph_lock(capture->graph->mutex);
    std::vector<Node*>& after = capture->branches[&stream];
    Node& node = capture->graph->add(std::move(operation.work), &stream.context, after);
    capture->captured.push_back(&node);
    after = {&node};
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
  if (implicit) misuse("call that a capture forbids", "on the legacy default stream");
  return implicit;
}

bool capture_event_record(Stream& stream, Event& event, CUresult& result) {
  const std::lock_guard lock(capture_mutex());
  event.capture = stream.capture;
  if (!stream.capture) return false;
  event.captured_after = stream.capture->branches[&stream];
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
  if (stream->legacy()) {  // it can't be captured, and so not join
    event.capture->invalid = true;
    misuse("call that a capture forbids", "the legacy default stream waits for a captured event");
    result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return true;
  }
  if (!stream->capture) event.capture->members.push_back(stream);
  stream->capture = event.capture;
  std::vector<Node*> after = event.captured_after;
  std::erase_if(after, [&](const Node* node) { return !event.capture->graph->contains(node); });
  add_missing(stream->capture->branches[stream.get()], after);
  result = event.capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  return true;
}

CUresult update_dependencies(Stream& stream, const std::vector<Node*>& nodes, bool replace) {
  const std::lock_guard lock(capture_mutex());
  if (!stream.capture) return CUDA_ERROR_ILLEGAL_STATE;
  for (const Node* const node : nodes) {
    if (!stream.capture->graph->contains(node)) return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<Node*>& after = stream.capture->branches[&stream];
  if (replace) after.clear();
  add_missing(after, nodes);
  return CUDA_SUCCESS;
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
  if (forbidden) misuse("call that a capture forbids", "");
  return forbidden;
}

bool capture_forbids_wait(Stream& stream) {
  if (active_captures.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(capture_mutex());
  if (!stream.capture) return false;
  stream.capture->invalid = true;
  misuse("call that a capture forbids", "of a stream that captures");
  return true;
}

bool is_capturing(const Stream& stream) {
  if (active_captures.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(capture_mutex());
  return stream.capture != nullptr;
}

void abandon_captures_of(const Context& context) {
  const std::lock_guard lock(capture_mutex());
  const std::vector<std::shared_ptr<Capture>> all = captures();
  for (const auto& capture : all) {
    const auto of_context = [&](const StreamRef& stream) { return &stream->context == &context; };
    if (std::ranges::none_of(capture->members, of_context)) continue;
    capture->invalid = true;
    leave(*capture);
  }
}

void forget_captured(const Node& node) {
  const std::lock_guard lock(capture_mutex());
  for (const auto& capture : captures()) {
    std::erase(capture->captured, &node);
    for (auto& [stream, after] : capture->branches) std::erase(after, &node);
  }
}

CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode) { return std::exchange(thread_mode, mode); }

}  // namespace simgpu
