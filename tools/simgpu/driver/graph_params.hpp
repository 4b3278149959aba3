// Between the parameters that the program gives for a node and the node's work.
#pragma once

#include <cuda.h>

#include "tools/simgpu/driver/graph.hpp"

namespace simgpu {

// Each checks as the stream's call would. `context` is set where the work runs in one; the current one stands in for nullptr.
CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS& params, WorkRef& work, Context*& context);
CUresult copy_work(const CUDA_MEMCPY3D& params, CUcontext handle, WorkRef& work, Context*& context);
CUresult fill_work(const CUDA_MEMSET_NODE_PARAMS& params, CUcontext handle, WorkRef& work, Context*& context);
CUresult host_work(const CUDA_HOST_NODE_PARAMS& params, WorkRef& work);
CUresult event_work(CUgraphNodeType type, CUevent event, WorkRef& work);
CUresult memop_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params, WorkRef& work, Context*& context);
// Of any kind that has work of its own; a child graph is the caller's.
CUresult any_work(const CUgraphNodeParams& params, WorkRef& work, Context*& context);

CUDA_MEMCPY3D params_of_copy(const Work& work);
CUDA_MEMSET_NODE_PARAMS params_of_fill(const Work& work);

}  // namespace simgpu
