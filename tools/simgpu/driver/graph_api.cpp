// Capture, and the shape of graphs: nodes, edges, clones.
#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "impl.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/registry.hpp"

namespace simgpu {
namespace {

// Fills one of the driver's arrays: the count when there is no array, else up to its length.
template <class Handle>
void answer_list(const std::vector<Handle>& all, Handle* out, size_t* count) {
  if (out) {
    for (std::size_t i = 0; i < *count; ++i) out[i] = i < all.size() ? all[i] : nullptr;
    *count = std::min(*count, all.size());
  } else {
    *count = all.size();
  }
}

CUresult answer_nodes(const std::vector<Node*>& nodes, CUgraphNode* out, size_t* count) {
  std::vector<CUgraphNode> handles;
  for (const Node* const node : nodes) handles.push_back(handle_of(node));
  answer_list(handles, out, count);
  return CUDA_SUCCESS;
}

// Adds or removes edges. Nothing changes when one of them can't be.
CUresult change_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count, bool add) {
  const GraphRef graph = registry<Graph>().find(handle);
  if (!graph || (count != 0 && (!from || !to))) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(graph->mutex);
  for (std::size_t i = 0; i < count; ++i) {
    const auto* const first = reinterpret_cast<const Node*>(from[i]);
    const auto* const second = reinterpret_cast<const Node*>(to[i]);
    if (first == second || !graph->contains(first) || !graph->contains(second)) return CUDA_ERROR_INVALID_VALUE;
    if ((std::ranges::count(second->dependencies, first) != 0) == add) return CUDA_ERROR_INVALID_VALUE;
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto& dependencies = reinterpret_cast<Node*>(to[i])->dependencies;
    if (add) dependencies.push_back(reinterpret_cast<Node*>(from[i]));
    if (!add) std::erase(dependencies, reinterpret_cast<Node*>(from[i]));
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
  if (active && graph) registry<Graph>().add(capture->graph);  // the program may add nodes to it now
  static thread_local std::vector<CUgraphNode> handles;        // valid until the thread asks again
  handles.clear();
  if (active) {
    for (const Node* const node : capture->branches[stream.get()]) handles.push_back(handle_of(node));
  }
  if (dependencies) *dependencies = handles.empty() ? nullptr : handles.data();
  if (count) *count = handles.size();
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

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph_handle, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData*, size_t count, CUstreamCaptureMode mode) {
  StreamRef stream;
  GraphRef graph = registry<Graph>().find(graph_handle);
  if (!graph || (count != 0 && !dependencies)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  std::vector<Node*> after;
  {
    const std::lock_guard lock(graph->mutex);
    for (std::size_t i = 0; i < count; ++i) {
      after.push_back(reinterpret_cast<Node*>(dependencies[i]));
      if (!graph->contains(after.back())) return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return begin_capture(stream, mode, std::move(graph), std::move(after));
}

CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode* dependencies, size_t count, unsigned int flags) {
  StreamRef stream;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count != 0 && !dependencies)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  std::vector<Node*> nodes;
  for (std::size_t i = 0; i < count; ++i) nodes.push_back(reinterpret_cast<Node*>(dependencies[i]));
  return update_dependencies(*stream, nodes, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

#if CUDA_VERSION >= 12030
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* dependencies, const CUgraphEdgeData*, size_t count,
                                              unsigned int flags) {
  return impl::cuStreamUpdateCaptureDependencies(stream, dependencies, count, flags);
}
#endif

CUresult cuGraphClone(CUgraph* clone_handle, CUgraph handle) {
  const GraphRef graph = registry<Graph>().find(handle);
  if (!graph || !clone_handle) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(graph->mutex);
  GraphRef clone = graph->clone();
  *clone_handle = reinterpret_cast<CUgraph>(clone.get());
  registry<Graph>().add(std::move(clone));
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* found, CUgraphNode original_handle, CUgraph clone_handle) {
  const GraphRef clone = registry<Graph>().find(clone_handle);
  const NodeRef original = registry<Node>().find(original_handle);
  if (!found || !clone || !original) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(clone->mutex);
  for (const NodeRef& node : clone->nodes()) {
    if (node->cloned_from != original->id) continue;
    *found = handle_of(node.get());
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroyNode(CUgraphNode handle) {
  const NodeRef node = registry<Node>().find(handle);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  forget_captured(*node);
  const std::lock_guard lock(node->graph.mutex);
  node->graph.remove(*node);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  const NodeRef node = registry<Node>().find(handle);
  if (!node || !type) return CUDA_ERROR_INVALID_VALUE;
  *type = node->work->type();
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  const GraphRef graph = registry<Graph>().find(handle);
  if (!graph || !count) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(graph->mutex);
  std::vector<Node*> all;
  for (const NodeRef& node : graph->nodes()) all.push_back(node.get());
  return answer_nodes(all, nodes, count);
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  const GraphRef graph = registry<Graph>().find(handle);
  if (!graph || !count) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(graph->mutex);
  std::vector<Node*> roots;
  for (const NodeRef& node : graph->nodes()) {
    if (node->dependencies.empty()) roots.push_back(node.get());
  }
  return answer_nodes(roots, nodes, count);
}

CUresult cuGraphGetEdges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  const GraphRef graph = registry<Graph>().find(handle);
  if (!graph || !count || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(graph->mutex);
  std::vector<CUgraphNode> begins, ends;
  for (const NodeRef& node : graph->nodes()) {
    for (const Node* const dependency : node->dependencies) {
      begins.push_back(handle_of(dependency));
      ends.push_back(handle_of(node.get()));
    }
  }
  size_t same = *count;
  answer_list(begins, from, &same);
  answer_list(ends, to, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode* dependencies, size_t* count) {
  const NodeRef node = registry<Node>().find(handle);
  if (!node || !count) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(node->graph.mutex);
  return answer_nodes(node->dependencies, dependencies, count);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode handle, CUgraphNode* dependents, size_t* count) {
  const NodeRef node = registry<Node>().find(handle);
  if (!node || !count) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(node->graph.mutex);
  return answer_nodes(node->graph.dependents(*node), dependents, count);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return change_edges(graph, from, to, count, true);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return change_edges(graph, from, to, count, false);
}

#if CUDA_VERSION >= 12030
// Edges carry no data here: each waits for the whole node.
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
  const CUresult result = impl::cuGraphGetEdges(graph, from, to, count);
  if (result == CUDA_SUCCESS && data && from) std::fill_n(data, *count, CUgraphEdgeData{});
  return result;
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* dependencies, CUgraphEdgeData* data, size_t* count) {
  const CUresult result = impl::cuGraphNodeGetDependencies(node, dependencies, count);
  if (result == CUDA_SUCCESS && data && dependencies) std::fill_n(data, *count, CUgraphEdgeData{});
  return result;
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* dependents, CUgraphEdgeData* data, size_t* count) {
  const CUresult result = impl::cuGraphNodeGetDependentNodes(node, dependents, count);
  if (result == CUDA_SUCCESS && data && dependents) std::fill_n(data, *count, CUgraphEdgeData{});
  return result;
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*,
                                   size_t count) {
  return change_edges(graph, from, to, count, true);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*,
                                      size_t count) {
  return change_edges(graph, from, to, count, false);
}
#endif

// The shape of the graph in Graphviz's language.
CUresult cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned int) {
  const GraphRef graph = registry<Graph>().find(handle);
  if (!graph || !path) return CUDA_ERROR_INVALID_VALUE;
  std::FILE* const file = std::fopen(path, "we");
  if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
  std::fprintf(file, "digraph {\n");
  const std::lock_guard lock(graph->mutex);
  for (const NodeRef& node : graph->nodes()) {
    const auto id = static_cast<unsigned long long>(node->id);
    std::fprintf(file, "  n%llu [label=\"type %d\"];\n", id, static_cast<int>(node->work->type()));
    for (const Node* const dependency : node->dependencies) {
      std::fprintf(file, "  n%llu -> n%llu;\n", static_cast<unsigned long long>(dependency->id), id);
    }
  }
  std::fprintf(file, "}\n");
  return std::fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

}  // namespace impl
}  // namespace simgpu
