// Copies as the other parts of the runtime need them: symbols and graph nodes.
#pragma once

#include "tools/simgpu/runtime/calls.hpp"

namespace simgpu::runtime {

// cudaErrorInvalidMemcpyDirection for a kind that is none.
template <Form form>
cudaError_t copy_now(void* to, const void* from, std::size_t size, cudaMemcpyKind kind);
template <Form form>
cudaError_t copy_on(void* to, const void* from, std::size_t size, cudaMemcpyKind kind, cudaStream_t stream);

// A three-dimensional copy in the driver's words. False for arrays, which the stand-in does not have, and
// broken kinds.
bool describe(const cudaMemcpy3DParms& parameters, CUDA_MEMCPY3D& copy);

}  // namespace simgpu::runtime
