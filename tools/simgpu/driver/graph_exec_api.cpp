// Instantiated graphs: launching them, and changing them in place.
#include <utility>

#include "impl.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/copy.hpp"
#include "tools/simgpu/driver/graph_params.hpp"
#include "tools/simgpu/driver/registry.hpp"

namespace simgpu {
namespace {

CUresult instantiate(CUgraphExec* handle, CUgraph graph_handle, unsigned long long flags) {
  const GraphRef graph = registry<Graph>().find(graph_handle);
  if (!handle || !graph) return CUDA_ERROR_INVALID_VALUE;
  auto exec = std::make_shared<GraphExec>();
  exec->flags = flags;
  if (!exec->fill_from(*graph)) return CUDA_ERROR_INVALID_VALUE;  // a cycle
  *handle = reinterpret_cast<CUgraphExec>(exec.get());
  registry<GraphExec>().add(std::move(exec));
  return CUDA_SUCCESS;
}

// Copies of more than one row are fixed at instantiation.
bool has_rows(const Work& work) {
  const auto* const copy = dynamic_cast<const CopyWork*>(&work);
  return copy && (copy->request().height > 1 || copy->request().depth > 1);
}

// Gives one node of the exec new work of its own type, made by `make`.
template <class Make>
CUresult set_work(CUgraphExec exec_handle, CUgraphNode handle, CUgraphNodeType type, Make make) {
  const ExecRef exec = registry<GraphExec>().find(exec_handle);
  const NodeRef node = registry<Node>().find(handle);
  if (!exec || !node || node->work->type() != type) return CUDA_ERROR_INVALID_VALUE;
  WorkRef work;
  Context* context = nullptr;
  if (const CUresult result = make(work, context)) return result;
  return exec->change(node->id, [&](ExecNode& target) {
    const Operands wanted = operands_of(*work);
    // The kinds of memory are fixed at instantiation, and what lay behind the operands then must still do.
    const bool moved = operands_of(*target.work) != target.operands;
    if (moved || !same_kinds(wanted, target.operands)) return CUDA_ERROR_INVALID_VALUE;
    if (has_rows(*target.work) || has_rows(*work)) return CUDA_ERROR_INVALID_VALUE;
    target.work = std::move(work);
    target.operands = wanted;
    return CUDA_SUCCESS;
  });
}

}  // namespace

namespace impl {

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
  const ExecRef exec = registry<GraphExec>().find(handle);
  if (!exec || !flags) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

// A launch that is on its way goes on.
CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return registry<GraphExec>().take(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
  StreamRef stream;
  if (!registry<GraphExec>().find(handle)) return CUDA_ERROR_INVALID_VALUE;
  return resolve_stream(stream_handle, stream);
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  const ExecRef exec = registry<GraphExec>().find(handle);
  StreamRef stream;
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(stream_handle, stream)) return result;
  return launch_graph(exec, stream);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  return set_work(exec, node, CU_GRAPH_NODE_TYPE_KERNEL,
                  [&](WorkRef& work, Context*& context) { return kernel_work(*params, work, context); });
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params, CUcontext handle) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  return set_work(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY,
                  [&](WorkRef& work, Context*& context) { return copy_work(*params, handle, work, context); });
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,
                                        CUcontext handle) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  return set_work(exec, node, CU_GRAPH_NODE_TYPE_MEMSET,
                  [&](WorkRef& work, Context*& context) { return fill_work(*params, handle, work, context); });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  return set_work(exec, node, CU_GRAPH_NODE_TYPE_HOST, [&](WorkRef& work, Context*&) { return host_work(*params, work); });
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  const auto type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  return set_work(exec, node, type, [&](WorkRef& work, Context*&) { return event_work(type, event, work); });
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  const auto type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  return set_work(exec, node, type, [&](WorkRef& work, Context*&) { return event_work(type, event, work); });
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  return set_work(exec, node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                  [&](WorkRef& work, Context*& context) { return memop_work(*params, work, context); });
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  return set_work(exec, node, params->type, [&](WorkRef& work, Context*& context) { return any_work(*params, work, context); });
}

// Only kernels, copies and fills can be switched off.
CUresult cuGraphNodeSetEnabled(CUgraphExec exec_handle, CUgraphNode handle, unsigned int enabled) {
  const ExecRef exec = registry<GraphExec>().find(exec_handle);
  const NodeRef node = registry<Node>().find(handle);
  if (!exec || !node) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNodeType type = node->work->type();
  const bool switchable =
      type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
  if (!switchable) return CUDA_ERROR_INVALID_VALUE;
  return exec->change(node->id, [&](ExecNode& target) {
    target.enabled = enabled != 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec_handle, CUgraphNode handle, unsigned int* enabled) {
  const ExecRef exec = registry<GraphExec>().find(exec_handle);
  const NodeRef node = registry<Node>().find(handle);
  if (!exec || !node || !enabled) return CUDA_ERROR_INVALID_VALUE;
  return exec->change(node->id, [&](const ExecNode& target) {
    *enabled = target.enabled;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec_handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo* info) {
  const ExecRef exec = registry<GraphExec>().find(exec_handle);
  const GraphRef graph = registry<Graph>().find(graph_handle);
  if (!exec || !graph || !info) return CUDA_ERROR_INVALID_VALUE;
  return update_exec(*exec, *graph, *info);
}

}  // namespace impl
}  // namespace simgpu
