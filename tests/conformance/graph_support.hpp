#pragma once

#include "tests/conformance/case.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {

constexpr std::size_t kBytes = 64 * kKiB;

// The graph of what `work` puts into the stream.
template <class Work>
CUgraph captured(CUstream stream, Work work) {
  CUgraph graph = nullptr;
  NEED(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  work();
  NEED(cuStreamEndCapture(stream, &graph));
  return graph;
}

inline CUgraphExec instantiated(CUgraph graph) {
  CUgraphExec exec = nullptr;
  NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
  return exec;
}

}  // namespace vramd::conformance
