// Filling memory.
#include "tools/simgpu/runtime/adapters.hpp"

namespace simgpu::runtime {

SIMGPU_BOTH_FORMS(cudaMemset, _ptds, (void* pointer, int value, size_t size), (pointer, value, size)) {
  if (const cudaError_t error = context_ready()) return finish(error);
  if (size == 0) return cudaSuccess;
  return finish(through<row::cudaMemset, form>([&](auto entry) { return fill<form>(entry, pointer, value, size); }));
}

SIMGPU_BOTH_FORMS(cudaMemsetAsync, _ptsz, (void* pointer, int value, size_t size, cudaStream_t stream),
                  (pointer, value, size, stream)) {
  if (size == 0) return finish(context_ready());
  return direct<row::cudaMemsetAsync, form>(address(pointer), static_cast<unsigned char>(value), size, stream);
}

SIMGPU_BOTH_FORMS(cudaMemset2D, _ptds, (void* pointer, size_t pitch, int value, size_t width, size_t height),
                  (pointer, pitch, value, width, height)) {
  if (width == 0 || height == 0) return finish(context_ready());
  return direct<row::cudaMemset2D, form>(address(pointer), pitch, static_cast<unsigned char>(value), width, height);
}

SIMGPU_BOTH_FORMS(cudaMemset2DAsync, _ptsz,
                  (void* pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
                  (pointer, pitch, value, width, height, stream)) {
  if (width == 0 || height == 0) return finish(context_ready());
  return direct<row::cudaMemset2DAsync, form>(address(pointer), pitch, static_cast<unsigned char>(value), width, height,
                                              stream);
}

// The driver has no three-dimensional fill: one two-dimensional fill a slice.
SIMGPU_BOTH_FORMS(cudaMemset3D, _ptds, (cudaPitchedPtr pitched, int value, cudaExtent extent), (pitched, value, extent)) {
  for (std::size_t z = 0; z < extent.depth; ++z) {
    void* slice = static_cast<char*>(pitched.ptr) + z * pitched.pitch * pitched.ysize;
    if (const cudaError_t error = body::cudaMemset2D<form>(slice, pitched.pitch, value, extent.width, extent.height))
      return error;
  }
  return cudaSuccess;
}

SIMGPU_BOTH_FORMS(cudaMemset3DAsync, _ptsz, (cudaPitchedPtr pitched, int value, cudaExtent extent, cudaStream_t stream),
                  (pitched, value, extent, stream)) {
  for (std::size_t z = 0; z < extent.depth; ++z) {
    void* slice = static_cast<char*>(pitched.ptr) + z * pitched.pitch * pitched.ysize;
    if (const cudaError_t error =
            body::cudaMemset2DAsync<form>(slice, pitched.pitch, value, extent.width, extent.height, stream))
      return error;
  }
  return cudaSuccess;
}

}  // namespace simgpu::runtime
