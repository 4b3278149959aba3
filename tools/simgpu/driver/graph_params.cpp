#include "tools/simgpu/driver/graph_params.hpp"

#include <utility>

#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/copy.hpp"
#include "tools/simgpu/driver/host_work.hpp"
#include "tools/simgpu/driver/launch.hpp"
#include "tools/simgpu/driver/memop.hpp"
#include "tools/simgpu/driver/registry.hpp"

namespace simgpu {
namespace {

CUresult context_of(CUcontext handle, Context*& context) {
  if (!handle) return usable_context(context);
  context = find_context(handle);
  return context && context->alive() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// Host memory of a copy goes by the pointer's type: what the simulator knows is told by address.
void describe(const CopySide& side, Memory memory, CUmemorytype& type, CUdeviceptr& device, std::size_t& pitch,
              std::size_t& height) {
  type = memory == Memory::pageable || memory == Memory::pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  device = side.address;
  pitch = side.pitch;
  height = side.pitch ? side.slice / side.pitch : 0;
}

}  // namespace

CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS& p, WorkRef& work, Context*& context) {
  const bool by_function = p.func != nullptr;
  auto* const handle = by_function ? p.func : reinterpret_cast<CUfunction>(p.kern);
  const LaunchShape shape{{p.gridDimX, p.gridDimY, p.gridDimZ}, {p.blockDimX, p.blockDimY, p.blockDimZ}, p.sharedMemBytes};
  std::shared_ptr<KernelWork> kernel;
  if (const CUresult result = KernelWork::make(handle, shape, p.kernelParams, p.extra, kernel)) return result;
  Context* const owner = kernel->function()->module->owner();
  if (owner) {
    context = owner;
  } else if (const CUresult result = context_of(by_function ? nullptr : p.ctx, context)) {
    return result;
  }
  work = std::move(kernel);
  return CUDA_SUCCESS;
}

CUresult copy_work(const CUDA_MEMCPY3D& params, CUcontext handle, WorkRef& work, Context*& context) {
  if (const CUresult result = context_of(handle, context)) return result;
  CopyRequest request;
  if (const CUresult result = request_of(params, request)) return result;
  std::shared_ptr<CopyWork> copy;
  if (const CUresult result = CopyWork::make(request, copy)) return result;
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  work = std::move(copy);
  return CUDA_SUCCESS;
}

CUresult fill_work(const CUDA_MEMSET_NODE_PARAMS& p, CUcontext handle, WorkRef& work, Context*& context) {
  if (const CUresult result = context_of(handle, context)) return result;
  std::shared_ptr<FillWork> fill;
  const FillRequest request{p.dst, p.height > 1 ? p.pitch : 0, p.value, p.elementSize, p.width, p.height};
  if (const CUresult result = FillWork::make(request, fill)) return result;
  if (!fill) return CUDA_ERROR_INVALID_VALUE;
  work = std::move(fill);
  return CUDA_SUCCESS;
}

CUresult host_work(const CUDA_HOST_NODE_PARAMS& params, WorkRef& work) {
  if (!params.fn) return CUDA_ERROR_INVALID_VALUE;
  work = std::make_shared<HostWork>(params);
  return CUDA_SUCCESS;
}

CUresult event_work(CUgraphNodeType type, CUevent handle, WorkRef& work) {
  EventRef event = registry<Event>().find(handle);
  if (!event) return CUDA_ERROR_INVALID_VALUE;
  if (event->shared) return CUDA_ERROR_NOT_SUPPORTED;  // graphs don't record and wait for events of several processes
  work = std::make_shared<EventWork>(type, std::move(event));
  return CUDA_SUCCESS;
}

CUresult memop_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params, WorkRef& work, Context*& context) {
  if (params.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = context_of(params.ctx, context)) return result;
  std::shared_ptr<MemOpWork> operations;
  if (const CUresult result = MemOpWork::make(params.paramArray, params.count, operations)) return result;
  work = std::move(operations);
  return CUDA_SUCCESS;
}

CUresult any_work(const CUgraphNodeParams& p, WorkRef& work, Context*& context) {
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const auto& k = p.kernel;
      const CUDA_KERNEL_NODE_PARAMS kernel{k.func,      k.gridDimX,       k.gridDimY,     k.gridDimZ, k.blockDimX, k.blockDimY,
                                           k.blockDimZ, k.sharedMemBytes, k.kernelParams, k.extra,    k.kern,      k.ctx};
      return kernel_work(kernel, work, context);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: return copy_work(p.memcpy.copyParams, p.memcpy.copyCtx, work, context);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto& m = p.memset;
      return fill_work({m.dst, m.pitch, m.value, m.elementSize, m.width, m.height}, m.ctx, work, context);
    }
    case CU_GRAPH_NODE_TYPE_HOST: return host_work({p.host.fn, p.host.userData}, work);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return event_work(p.type, p.eventWait.event, work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return event_work(p.type, p.eventRecord.event, work);
    case CU_GRAPH_NODE_TYPE_EMPTY: work = std::make_shared<NoWork>(CU_GRAPH_NODE_TYPE_EMPTY); return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return memop_work({p.memOp.ctx, p.memOp.count, p.memOp.paramArray, p.memOp.flags}, work, context);
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUDA_MEMCPY3D params_of_copy(const Work& work) {
  const auto& copy = static_cast<const CopyWork&>(work);
  const CopyRequest& request = copy.request();
  CUDA_MEMCPY3D params{};
  describe(request.source, copy.from(), params.srcMemoryType, params.srcDevice, params.srcPitch, params.srcHeight);
  describe(request.destination, copy.to(), params.dstMemoryType, params.dstDevice, params.dstPitch, params.dstHeight);
  if (params.srcMemoryType == CU_MEMORYTYPE_HOST) {
    params.srcHost = reinterpret_cast<const void*>(std::exchange(params.srcDevice, 0));
  }
  if (params.dstMemoryType == CU_MEMORYTYPE_HOST) params.dstHost = reinterpret_cast<void*>(std::exchange(params.dstDevice, 0));
  params.WidthInBytes = request.width;
  params.Height = request.height;
  params.Depth = request.depth;
  return params;
}

CUDA_MEMSET_NODE_PARAMS params_of_fill(const Work& work) {
  const FillRequest& r = static_cast<const FillWork&>(work).request();
  return {r.address, r.pitch, r.value, r.element, r.width, r.height};
}

}  // namespace simgpu
