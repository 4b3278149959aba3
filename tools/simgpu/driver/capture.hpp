// Stream capture and graphs. A graph is a list of operations in the order of their capture, which respects
// all dependencies; a launch runs them one after the other.
#pragma once

#include <cuda.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/simgpu/driver/stream.hpp"

namespace simgpu {

struct Event;

struct Node {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::function<CUresult()> run;
};

struct Graph {
  std::mutex mutex;
  std::vector<std::shared_ptr<Node>> nodes;
};

struct GraphExec {
  std::vector<std::shared_ptr<Node>> nodes;  // never changes
  unsigned long long flags = 0;
};

struct Branch {
  std::size_t last_node = 0;  // nodes captured on this stream end here
  std::size_t joined = 0;     // another stream of the capture waited for the nodes up to here
};

struct Capture {
  std::uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id owner;
  bool invalid = false;
  std::shared_ptr<Graph> graph;
  const Stream* origin = nullptr;
  std::map<const Stream*, Branch> branches;
};

// Guards all captures and Stream::capture.
std::mutex& capture_mutex();
// Number of captures in progress: 0 lets every check end at once.
extern std::atomic<int> active_captures;

CUresult begin_capture(const StreamRef& stream, CUstreamCaptureMode mode);
CUresult end_capture(const StreamRef& stream, std::shared_ptr<Graph>& graph);

// If the stream captures, takes the operation into the graph, tells the outcome in `result` and returns true.
// If the stream is the legacy one and a blocking stream of its context captures, that capture is invalidated
// and the answer is STREAM_CAPTURE_IMPLICIT. False: not a matter of captures.
bool capture_operation(Stream& stream, Operation& operation, CUresult& result);
bool capture_event_record(Stream& stream, Event& event, CUresult& result);
bool capture_event_wait(const StreamRef& stream, Event& event, CUresult& result);

// For calls that synchronise or free: true when a capture forbids them to this thread, in its capture mode.
// The captures concerned are invalidated; answer STREAM_CAPTURE_UNSUPPORTED.
bool capture_forbids();
// For calls that synchronise a stream: true when it captures. Invalidates the capture.
bool capture_forbids_wait(Stream& stream);
bool is_capturing(const Stream& stream);

CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode);

}  // namespace simgpu
