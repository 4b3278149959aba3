// Capture and graphs as the program sees them. Graphs come from captures only: functions that add nodes are
// not implemented.
#include <algorithm>
#include <utility>

#include "impl.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/registry.hpp"

namespace simgpu {
namespace {

CUgraphNode handle_of(const Node* node) { return reinterpret_cast<CUgraphNode>(const_cast<Node*>(node)); }

CUresult instantiate(CUgraphExec* handle, CUgraph graph_handle, unsigned long long flags) {
  const auto graph = registry<Graph>().find(graph_handle);
  if (!handle || !graph) return CUDA_ERROR_INVALID_VALUE;
  auto exec = std::make_shared<GraphExec>();
  exec->flags = flags;
  {
    const std::lock_guard lock(graph->mutex);
    exec->nodes = graph->nodes;
  }
  *handle = reinterpret_cast<CUgraphExec>(exec.get());
  registry<GraphExec>().add(std::move(exec));
  return CUDA_SUCCESS;
}

// A node's error ends the launch and faults the context, like that of an operation outside a graph.
CUresult run_nodes(const GraphExec& exec, const Context& context) {
  for (const auto& node : exec.nodes) {
    if (const CUresult fault = context.fault()) return fault;
    if (const CUresult result = node->run()) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

namespace impl {

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  *mode = exchange_capture_mode(*mode);
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  StreamRef stream;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  return begin_capture(stream, mode);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph_handle) {
  StreamRef stream;
  if (!graph_handle) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  *graph_handle = nullptr;
  std::shared_ptr<Graph> graph;
  if (const CUresult result = end_capture(stream, graph)) return result;
  *graph_handle = reinterpret_cast<CUgraph>(graph.get());
  registry<Graph>().add(std::move(graph));
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return impl::cuStreamGetCaptureInfo_v2(handle, status, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** dependencies, size_t* count) {
  StreamRef stream;
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  const std::lock_guard lock(capture_mutex());
  const auto& capture = stream->capture;
  *status = !capture           ? CU_STREAM_CAPTURE_STATUS_NONE
            : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                               : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  const bool active = *status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (id) *id = active ? capture->id : 0;
  if (graph) *graph = active ? reinterpret_cast<CUgraph>(capture->graph.get()) : nullptr;
  if (dependencies) *dependencies = nullptr;  // nodes can't be added by hand, so nobody needs them
  if (count) *count = 0;
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 12030
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* count) {
  if (edges) *edges = nullptr;
  return impl::cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}
#endif

CUresult cuGraphCreate(CUgraph* handle, unsigned int flags) {
  if (!handle || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  auto graph = std::make_shared<Graph>();
  *handle = reinterpret_cast<CUgraph>(graph.get());
  registry<Graph>().add(std::move(graph));
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle) { return registry<Graph>().take(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  const auto graph = registry<Graph>().find(handle);
  if (!graph || !count) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(graph->mutex);
  if (nodes) {
    for (std::size_t i = 0; i < *count; ++i) nodes[i] = i < graph->nodes.size() ? handle_of(graph->nodes[i].get()) : nullptr;
    *count = std::min(*count, graph->nodes.size());
  } else {
    *count = graph->nodes.size();
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return instantiate(exec, graph, flags);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = instantiate(exec, graph, params->flags);
  params->hErrNode_out = nullptr;
  params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char*, size_t) {
  if (error_node) *error_node = nullptr;
  return instantiate(exec, graph, 0);
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  const auto exec = registry<GraphExec>().find(handle);
  if (!exec || !flags) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return registry<GraphExec>().take(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream) {
  return registry<GraphExec>().find(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  const auto exec = registry<GraphExec>().find(handle);
  StreamRef stream;
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(stream_handle, stream)) return result;
  Operation operation;
  operation.type = CU_GRAPH_NODE_TYPE_GRAPH;
  operation.writes_host = true;
  operation.run = [exec, &context = stream->context] { return run_nodes(*exec, context); };
  return submit(stream, std::move(operation));
}

}  // namespace impl
}  // namespace simgpu
