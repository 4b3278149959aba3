// Stream capture: operations of the streams that take part become nodes of a graph.
#pragma once

#include <cuda.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/simgpu/driver/graph.hpp"
#include "tools/simgpu/driver/stream.hpp"

namespace simgpu {

struct Capture {
  std::uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id owner;
  bool invalid = false;
  std::shared_ptr<Graph> graph;
  const Stream* origin = nullptr;
  std::vector<Node*> captured;
  std::vector<StreamRef> members;  // streams that take part, of whatever context
  // For each stream that takes part: the nodes that its next node depends on.
  std::map<const Stream*, std::vector<Node*>> branches;
};

// Guards all captures and Stream::capture.
std::mutex& capture_mutex();
// Number of captures in progress: 0 lets every check end at once.
extern std::atomic<int> active_captures;

// `graph`: one of the program's to add to, after `dependencies`; else a new one.
CUresult begin_capture(const StreamRef& stream, CUstreamCaptureMode mode, GraphRef graph = nullptr,
                       std::vector<Node*> dependencies = {});
CUresult end_capture(const StreamRef& stream, std::shared_ptr<Graph>& graph);

// If the stream captures, takes the operation into the graph, tells the outcome in `result` and returns true.
// If the stream is the legacy one and a blocking stream of its context captures, that capture is invalidated
// and the answer is STREAM_CAPTURE_IMPLICIT. False: not a matter of captures.
bool capture_operation(Stream& stream, Operation& operation, CUresult& result);
bool capture_event_record(Stream& stream, Event& event, CUresult& result);
// Makes `nodes` the dependencies of the stream's next node, or adds them.
CUresult update_dependencies(Stream& stream, const std::vector<Node*>& nodes, bool replace);
bool capture_event_wait(const StreamRef& stream, Event& event, CUresult& result);

// For calls that synchronise or free: true when a capture forbids them to this thread, in its capture mode.
// The captures concerned are invalidated; answer STREAM_CAPTURE_UNSUPPORTED.
bool capture_forbids();
// For calls that synchronise a stream: true when it captures. Invalidates the capture.
bool capture_forbids_wait(Stream& stream);
bool is_capturing(const Stream& stream);

// The context ends: so do the captures that its streams take part in.
void abandon_captures_of(const Context& context);
// The node is being destroyed: no capture depends on it any more.
void forget_captured(const Node& node);

CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode);

}  // namespace simgpu
