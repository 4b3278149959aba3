// Nodes that the program adds by hand, and their parameters.
#include <algorithm>
#include <utility>
#include <vector>

#include "impl.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/graph_params.hpp"
#include "tools/simgpu/driver/host_work.hpp"
#include "tools/simgpu/driver/launch.hpp"
#include "tools/simgpu/driver/memop.hpp"
#include "tools/simgpu/driver/registry.hpp"

namespace simgpu {
namespace {

// The named nodes; false when one isn't a node of the graph. The caller holds the graph's mutex.
bool nodes_of(const Graph& graph, const CUgraphNode* handles, std::size_t count, std::vector<Node*>& nodes) {
  for (std::size_t i = 0; i < count; ++i) {
    auto* const node = reinterpret_cast<Node*>(handles[i]);
    if (!graph.contains(node) || std::ranges::count(nodes, node)) return false;
    nodes.push_back(node);
  }
  return true;
}

CUresult add_node(CUgraphNode* handle, CUgraph graph_handle, const CUgraphNode* dependencies, std::size_t count, WorkRef work,
                  Context* context, GraphRef child = nullptr) {
  const GraphRef graph = registry<Graph>().find(graph_handle);
  if (!handle || !graph || (count != 0 && !dependencies)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(graph->mutex);
  std::vector<Node*> after;
  if (!nodes_of(*graph, dependencies, count, after)) return CUDA_ERROR_INVALID_VALUE;
  Node& node = graph->add(std::move(work), context, std::move(after));
  node.child = std::move(child);
  *handle = handle_of(&node);
  return CUDA_SUCCESS;
}

// The same with work that `make` makes of the program's parameters.
template <class Params, class Make>
CUresult add_made(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, std::size_t count, const Params* params,
                  Make make) {
  WorkRef work;
  Context* context = nullptr;
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = make(*params, work, context)) return result;
  return add_node(handle, graph, dependencies, count, std::move(work), context);
}

CUresult clone_of(CUgraph handle, GraphRef& clone) {
  const GraphRef graph = registry<Graph>().find(handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(graph->mutex);
  clone = graph->clone();
  registry<Graph>().add(clone);
  return CUDA_SUCCESS;
}

// A node of the wanted type, or nullptr. Keeps the node alive while it is looked at.
NodeRef node_of_type(CUgraphNode handle, CUgraphNodeType type) {
  NodeRef node = registry<Node>().find(handle);
  return node && node->work->type() == type ? node : nullptr;
}

template <class Make>
CUresult set_work(CUgraphNode handle, CUgraphNodeType type, Make make) {
  const NodeRef node = node_of_type(handle, type);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  WorkRef work;
  Context* context = nullptr;
  if (const CUresult result = make(work, context)) return result;
  const std::lock_guard lock(node->graph.mutex);
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

// Node parameters are handed out as pointers into the node: valid until the node changes.
CUresult kernel_params(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS& params) {
  const NodeRef node = node_of_type(handle, CU_GRAPH_NODE_TYPE_KERNEL);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  const auto& kernel = static_cast<const KernelWork&>(*node->work);
  const LaunchShape& shape = kernel.shape();
  params = {};
  params.func = reinterpret_cast<CUfunction>(kernel.function().get());
  params.gridDimX = shape.grid.x, params.gridDimY = shape.grid.y, params.gridDimZ = shape.grid.z;
  params.blockDimX = shape.block.x, params.blockDimY = shape.block.y, params.blockDimZ = shape.block.z;
  params.sharedMemBytes = shape.dynamic_shared;
  params.kernelParams = kernel.parameter_array();
  params.ctx = handle_of(node->context);
  return CUDA_SUCCESS;
}

}  // namespace

namespace impl {

CUresult cuGraphAddKernelNode_v2(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS* params) {
  return add_made(handle, graph, dependencies, count, params, kernel_work);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMCPY3D* params, CUcontext context_handle) {
  return add_made(handle, graph, dependencies, count, params,
                  [&](const auto& p, WorkRef& work, Context*& context) { return copy_work(p, context_handle, work, context); });
}

CUresult cuGraphAddMemsetNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context_handle) {
  return add_made(handle, graph, dependencies, count, params,
                  [&](const auto& p, WorkRef& work, Context*& context) { return fill_work(p, context_handle, work, context); });
}

CUresult cuGraphAddHostNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                            const CUDA_HOST_NODE_PARAMS* params) {
  return add_made(handle, graph, dependencies, count, params,
                  [](const auto& p, WorkRef& work, Context*&) { return host_work(p, work); });
}

CUresult cuGraphAddEmptyNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count) {
  return add_node(handle, graph, dependencies, count, std::make_shared<NoWork>(CU_GRAPH_NODE_TYPE_EMPTY), nullptr);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                  CUgraph child_handle) {
  GraphRef child;
  if (const CUresult result = clone_of(child_handle, child)) return result;
  return add_node(handle, graph, dependencies, count, std::make_shared<NoWork>(CU_GRAPH_NODE_TYPE_GRAPH), nullptr,
                  std::move(child));
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                   CUevent event) {
  WorkRef work;
  if (const CUresult result = event_work(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, work)) return result;
  return add_node(handle, graph, dependencies, count, std::move(work), nullptr);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                 CUevent event) {
  WorkRef work;
  if (const CUresult result = event_work(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, work)) return result;
  return add_node(handle, graph, dependencies, count, std::move(work), nullptr);
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return add_made(handle, graph, dependencies, count, params, memop_work);
}

CUresult cuGraphAddNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                        CUgraphNodeParams* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    const CUresult result = impl::cuGraphAddChildGraphNode(handle, graph, dependencies, count, params->graph.graph);
    if (result == CUDA_SUCCESS) impl::cuGraphChildGraphNodeGetGraph(*handle, &params->graph.graph);
    return result;
  }
  WorkRef work;
  Context* context = nullptr;
  if (const CUresult result = any_work(*params, work, context)) return result;
  return add_node(handle, graph, dependencies, count, std::move(work), context);
}

#if CUDA_VERSION >= 12030
// Edge data tells which part of a node an edge leaves; the simulator waits for the whole node.
CUresult cuGraphAddNode_v2(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData*,
                           size_t count, CUgraphNodeParams* params) {
  return impl::cuGraphAddNode(handle, graph, dependencies, count, params);
}
#endif

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* params) {
  return params ? kernel_params(handle, *params) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  return set_work(handle, CU_GRAPH_NODE_TYPE_KERNEL,
                  [&](WorkRef& work, Context*& context) { return kernel_work(*params, work, context); });
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* params) {
  const NodeRef node = node_of_type(handle, CU_GRAPH_NODE_TYPE_MEMCPY);
  if (!node || !params) return CUDA_ERROR_INVALID_VALUE;
  *params = params_of_copy(*node->work);
  return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode handle, const CUDA_MEMCPY3D* params) {
  const NodeRef node = registry<Node>().find(handle);
  if (!params || !node) return CUDA_ERROR_INVALID_VALUE;
  return set_work(handle, CU_GRAPH_NODE_TYPE_MEMCPY, [&](WorkRef& work, Context*& context) {
    return copy_work(*params, handle_of(node->context), work, context);
  });
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS* params) {
  const NodeRef node = node_of_type(handle, CU_GRAPH_NODE_TYPE_MEMSET);
  if (!node || !params) return CUDA_ERROR_INVALID_VALUE;
  *params = params_of_fill(*node->work);
  return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS* params) {
  const NodeRef node = registry<Node>().find(handle);
  if (!params || !node) return CUDA_ERROR_INVALID_VALUE;
  return set_work(handle, CU_GRAPH_NODE_TYPE_MEMSET, [&](WorkRef& work, Context*& context) {
    return fill_work(*params, handle_of(node->context), work, context);
  });
}

CUresult cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS* params) {
  const NodeRef node = node_of_type(handle, CU_GRAPH_NODE_TYPE_HOST);
  if (!node || !params) return CUDA_ERROR_INVALID_VALUE;
  *params = static_cast<const HostWork&>(*node->work).params();
  return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeSetParams(CUgraphNode handle, const CUDA_HOST_NODE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  return set_work(handle, CU_GRAPH_NODE_TYPE_HOST, [&](WorkRef& work, Context*&) { return host_work(*params, work); });
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
  const NodeRef node = node_of_type(handle, CU_GRAPH_NODE_TYPE_GRAPH);
  if (!node || !graph || !node->child) return CUDA_ERROR_INVALID_VALUE;
  *graph = reinterpret_cast<CUgraph>(node->child.get());
  return CUDA_SUCCESS;
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent* event) {
  const NodeRef node = node_of_type(handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  if (!node || !event) return CUDA_ERROR_INVALID_VALUE;
  *event = reinterpret_cast<CUevent>(static_cast<const EventWork&>(*node->work).event().get());
  return CUDA_SUCCESS;
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode handle, CUevent event) {
  const auto type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  return set_work(handle, type, [&](WorkRef& work, Context*&) { return event_work(type, event, work); });
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent* event) {
  const NodeRef node = node_of_type(handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  if (!node || !event) return CUDA_ERROR_INVALID_VALUE;
  *event = reinterpret_cast<CUevent>(static_cast<const EventWork&>(*node->work).event().get());
  return CUDA_SUCCESS;
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode handle, CUevent event) {
  const auto type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  return set_work(handle, type, [&](WorkRef& work, Context*&) { return event_work(type, event, work); });
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode handle, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  return set_work(handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                  [&](WorkRef& work, Context*& context) { return memop_work(*params, work, context); });
}

CUresult cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  return set_work(handle, params->type, [&](WorkRef& work, Context*& context) { return any_work(*params, work, context); });
}

// Attributes tune launches; the simulator has nothing to tune.
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID, const CUkernelNodeAttrValue* value) {
  return value && node_of_type(handle, CU_GRAPH_NODE_TYPE_KERNEL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID, CUkernelNodeAttrValue* value) {
  if (!value || !node_of_type(handle, CU_GRAPH_NODE_TYPE_KERNEL)) return CUDA_ERROR_INVALID_VALUE;
  *value = {};
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  const bool kernels = node_of_type(to, CU_GRAPH_NODE_TYPE_KERNEL) && node_of_type(from, CU_GRAPH_NODE_TYPE_KERNEL);
  return kernels ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace impl
}  // namespace simgpu
