// Graphs. Structs that only differ in the names of their members are handed on; the others are rewritten.
#include "tools/simgpu/runtime/copies.hpp"
#include "tools/simgpu/runtime/registration.hpp"

namespace simgpu::runtime {
namespace {

static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));
static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));

cudaError_t describe(const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS& to) {
  if (from == nullptr) return cudaErrorInvalidValue;
  to = {};
  if (const cudaError_t error = find_kernel(from->func, to.kern)) return error;
  to.gridDimX = from->gridDim.x;
  to.gridDimY = from->gridDim.y;
  to.gridDimZ = from->gridDim.z;
  to.blockDimX = from->blockDim.x;
  to.blockDimY = from->blockDim.y;
  to.blockDimZ = from->blockDim.z;
  to.sharedMemBytes = from->sharedMemBytes;
  to.kernelParams = from->kernelParams;
  to.extra = from->extra;
  return cudaSuccess;
}

cudaError_t describe(const cudaMemsetParams* from, CUDA_MEMSET_NODE_PARAMS& to) {
  if (from == nullptr) return cudaErrorInvalidValue;
  to = {};
  to.dst = address(from->dst);
  to.pitch = from->pitch;
  to.value = from->value;
  to.elementSize = from->elementSize;
  to.width = from->width;
  to.height = from->height;
  return cudaSuccess;
}

// Memory nodes belong to a context: the current one.
cudaError_t context_of_node(CUcontext& context) { return translate(driver_call<row::internal_current_context>(&context)); }

cudaMemcpy3DParms one_dimensional(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  cudaMemcpy3DParms parameters{};
  parameters.srcPtr = {const_cast<void*>(from), size, size, 1};
  parameters.dstPtr = {to, size, size, 1};
  parameters.extent = {size, 1, 1};
  parameters.kind = kind;
  return parameters;
}

}  // namespace

SIMGPU_API cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  return direct<row::cudaGraphCreate>(graph, flags);
}
SIMGPU_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return direct<row::cudaGraphDestroy>(graph); }
SIMGPU_API cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return direct<row::cudaGraphClone>(clone, graph);
}
SIMGPU_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return direct<row::cudaGraphInstantiate>(exec, graph, flags);
}
SIMGPU_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return direct<row::cudaGraphInstantiateWithFlags>(exec, graph, flags);
}
SIMGPU_BOTH_FORMS(cudaGraphInstantiateWithParams, _ptsz,
                  (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams* parameters),
                  (exec, graph, parameters)) {
  return direct<row::cudaGraphInstantiateWithParams, form>(exec, graph, as<CUDA_GRAPH_INSTANTIATE_PARAMS*>(parameters));
}
SIMGPU_BOTH_FORMS(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream)) {
  return direct<row::cudaGraphLaunch, form>(exec, stream);
}
SIMGPU_BOTH_FORMS(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream)) {
  return direct<row::cudaGraphUpload, form>(exec, stream);
}
SIMGPU_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return direct<row::cudaGraphExecDestroy>(exec); }
SIMGPU_API cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return direct<row::cudaGraphExecGetFlags>(exec, as<cuuint64_t*>(flags));
}
SIMGPU_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result) {
  return direct<row::cudaGraphExecUpdate>(exec, graph, as<CUgraphExecUpdateResultInfo*>(result));
}
SIMGPU_API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
  return direct<row::cudaGraphDebugDotPrint>(graph, path, flags);
}

SIMGPU_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return direct<row::cudaGraphGetNodes>(graph, nodes, count);
}
SIMGPU_API cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return direct<row::cudaGraphGetRootNodes>(graph, nodes, count);
}
SIMGPU_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                         cudaGraphEdgeData* edges, size_t* count) {
  return direct<row::cudaGraphGetEdges>(graph, from, to, as<CUgraphEdgeData*>(edges), count);
}
SIMGPU_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return direct<row::cudaGraphNodeGetType>(node, as<CUgraphNodeType*>(type));
}
SIMGPU_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                                    cudaGraphEdgeData* edges, size_t* count) {
  return direct<row::cudaGraphNodeGetDependencies>(node, dependencies, as<CUgraphEdgeData*>(edges), count);
}
SIMGPU_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                                const cudaGraphEdgeData* edges, size_t count) {
  return direct<row::cudaGraphAddDependencies>(graph, from, to, as<const CUgraphEdgeData*>(edges), count);
}
SIMGPU_API cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) { return direct<row::cudaGraphDestroyNode>(node); }
SIMGPU_API cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int enabled) {
  return direct<row::cudaGraphNodeSetEnabled>(exec, node, enabled);
}
SIMGPU_API cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int* enabled) {
  return direct<row::cudaGraphNodeGetEnabled>(exec, node, enabled);
}

SIMGPU_API cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                             size_t count) {
  return direct<row::cudaGraphAddEmptyNode>(node, graph, dependencies, count);
}

SIMGPU_API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                              size_t count, const cudaKernelNodeParams* parameters) {
  if (const cudaError_t error = context_ready()) return finish(error);
  CUDA_KERNEL_NODE_PARAMS kernel;
  if (const cudaError_t error = describe(parameters, kernel)) return finish(error);
  return finish(driver_call<row::cudaGraphAddKernelNode>(node, graph, dependencies, count, &kernel));
}

SIMGPU_API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                        const cudaKernelNodeParams* parameters) {
  if (const cudaError_t error = context_ready()) return finish(error);
  CUDA_KERNEL_NODE_PARAMS kernel;
  if (const cudaError_t error = describe(parameters, kernel)) return finish(error);
  return finish(driver_call<row::cudaGraphExecKernelNodeSetParams>(exec, node, &kernel));
}

SIMGPU_API cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                              size_t count, const cudaMemcpy3DParms* parameters) {
  if (parameters == nullptr) return finish(cudaErrorInvalidValue);
  if (const cudaError_t error = context_ready()) return finish(error);
  CUDA_MEMCPY3D copy;
  CUcontext context = nullptr;
  if (!describe(*parameters, copy)) return finish(cudaErrorNotSupported);
  if (const cudaError_t error = context_of_node(context)) return finish(error);
  return finish(driver_call<row::cudaGraphAddMemcpyNode>(node, graph, dependencies, count, &copy, context));
}

SIMGPU_API cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                                size_t count, void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms parameters = one_dimensional(to, from, size, kind);
  return cudaGraphAddMemcpyNode(node, graph, dependencies, count, &parameters);
}

SIMGPU_API cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                                          const void* from, size_t size, cudaMemcpyKind kind) {
  if (const cudaError_t error = context_ready()) return finish(error);
  CUDA_MEMCPY3D copy;
  CUcontext context = nullptr;
  if (!describe(one_dimensional(to, from, size, kind), copy)) return finish(cudaErrorInvalidMemcpyDirection);
  if (const cudaError_t error = context_of_node(context)) return finish(error);
  return finish(driver_call<row::cudaGraphExecMemcpyNodeSetParams1D>(exec, node, &copy, context));
}

SIMGPU_API cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                              size_t count, const cudaMemsetParams* parameters) {
  if (const cudaError_t error = context_ready()) return finish(error);
  CUDA_MEMSET_NODE_PARAMS fill;
  CUcontext context = nullptr;
  if (const cudaError_t error = describe(parameters, fill)) return finish(error);
  if (const cudaError_t error = context_of_node(context)) return finish(error);
  return finish(driver_call<row::cudaGraphAddMemsetNode>(node, graph, dependencies, count, &fill, context));
}

SIMGPU_API cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                            size_t count, const cudaHostNodeParams* parameters) {
  if (parameters == nullptr) return finish(cudaErrorInvalidValue);
  CUDA_HOST_NODE_PARAMS host{};
  host.fn = parameters->fn;
  host.userData = parameters->userData;
  return direct<row::cudaGraphAddHostNode>(node, graph, dependencies, count, &host);
}

SIMGPU_API cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                                  size_t count, cudaGraph_t child) {
  return direct<row::cudaGraphAddChildGraphNode>(node, graph, dependencies, count, child);
}

SIMGPU_API cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                   const cudaGraphNode_t* dependencies, size_t count, cudaEvent_t event) {
  return direct<row::cudaGraphAddEventRecordNode>(node, graph, dependencies, count, event);
}

SIMGPU_API cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                                 size_t count, cudaEvent_t event) {
  return direct<row::cudaGraphAddEventWaitNode>(node, graph, dependencies, count, event);
}

SIMGPU_API cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                                size_t count, cudaMemAllocNodeParams* parameters) {
  return direct<row::cudaGraphAddMemAllocNode>(node, graph, dependencies, count, as<CUDA_MEM_ALLOC_NODE_PARAMS*>(parameters));
}

SIMGPU_API cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                               size_t count, void* pointer) {
  return direct<row::cudaGraphAddMemFreeNode>(node, graph, dependencies, count, address(pointer));
}

SIMGPU_API cudaError_t cudaDeviceGraphMemTrim(int device) { return direct<row::cudaDeviceGraphMemTrim>(device); }

}  // namespace simgpu::runtime
