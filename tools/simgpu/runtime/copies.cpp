#include "tools/simgpu/runtime/copies.hpp"

#include "tools/simgpu/runtime/adapters.hpp"

namespace simgpu::runtime {
namespace {

struct MemoryTypes {
  CUmemorytype from, to;
};

bool types_of(cudaMemcpyKind kind, MemoryTypes& types) {
  switch (kind) {
    case cudaMemcpyHostToHost: types = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST}; return true;
    case cudaMemcpyHostToDevice: types = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE}; return true;
    case cudaMemcpyDeviceToHost: types = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST}; return true;
    case cudaMemcpyDeviceToDevice: types = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE}; return true;
    case cudaMemcpyDefault: types = {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED}; return true;
  }
  return false;
}

// CUDA_MEMCPY2D and CUDA_MEMCPY3D name the two sides in the same way.
template <class Copy>
void set_sides(Copy& copy, MemoryTypes types, const void* from, void* to) {
  copy.srcMemoryType = types.from;
  copy.dstMemoryType = types.to;
  if (types.from == CU_MEMORYTYPE_HOST)
    copy.srcHost = from;
  else
    copy.srcDevice = address(from);
  if (types.to == CU_MEMORYTYPE_HOST)
    copy.dstHost = to;
  else
    copy.dstDevice = address(to);
}

cudaError_t describe_2d(CUDA_MEMCPY2D& copy, void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                        std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  MemoryTypes types{};
  if (!types_of(kind, types)) return cudaErrorInvalidMemcpyDirection;
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
  copy = {};
  set_sides(copy, types, from, to);
  copy.srcPitch = from_pitch;
  copy.dstPitch = to_pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  return cudaSuccess;
}

}  // namespace

template <Form form>
cudaError_t copy_now(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  if (const cudaError_t error = context_ready()) return finish(error);
  if (size == 0) return cudaSuccess;
  const auto call = [&](auto entry) { return copy<form>(entry, to, from, size); };
  switch (kind) {
    case cudaMemcpyHostToHost: return finish(through<row::cudaMemcpy_HostToHost, form>(call));
    case cudaMemcpyHostToDevice: return finish(through<row::cudaMemcpy_HostToDevice, form>(call));
    case cudaMemcpyDeviceToHost: return finish(through<row::cudaMemcpy_DeviceToHost, form>(call));
    case cudaMemcpyDeviceToDevice: return finish(through<row::cudaMemcpy_DeviceToDevice, form>(call));
    case cudaMemcpyDefault: return finish(through<row::cudaMemcpy_Default, form>(call));
  }
  return finish(cudaErrorInvalidMemcpyDirection);
}

template <Form form>
cudaError_t copy_on(void* to, const void* from, std::size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t error = context_ready()) return finish(error);
  if (size == 0) return cudaSuccess;
  const auto call = [&](auto entry) { return copy_async(entry, to, from, size, stream); };
  switch (kind) {
    case cudaMemcpyHostToHost: return finish(through<row::cudaMemcpyAsync_HostToHost, form>(call));
    case cudaMemcpyHostToDevice: return finish(through<row::cudaMemcpyAsync_HostToDevice, form>(call));
    case cudaMemcpyDeviceToHost: return finish(through<row::cudaMemcpyAsync_DeviceToHost, form>(call));
    case cudaMemcpyDeviceToDevice: return finish(through<row::cudaMemcpyAsync_DeviceToDevice, form>(call));
    case cudaMemcpyDefault: return finish(through<row::cudaMemcpyAsync_Default, form>(call));
  }
  return finish(cudaErrorInvalidMemcpyDirection);
}

template cudaError_t copy_now<Form::legacy>(void*, const void*, std::size_t, cudaMemcpyKind);
template cudaError_t copy_now<Form::per_thread>(void*, const void*, std::size_t, cudaMemcpyKind);
template cudaError_t copy_on<Form::legacy>(void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t);
template cudaError_t copy_on<Form::per_thread>(void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t);

bool describe(const cudaMemcpy3DParms& p, CUDA_MEMCPY3D& copy) {
  MemoryTypes types{};
  if (p.srcArray != nullptr || p.dstArray != nullptr || !types_of(p.kind, types)) return false;
  copy = {};
  set_sides(copy, types, p.srcPtr.ptr, p.dstPtr.ptr);
  copy.srcXInBytes = p.srcPos.x;
  copy.srcY = p.srcPos.y;
  copy.srcZ = p.srcPos.z;
  copy.srcPitch = p.srcPtr.pitch;
  copy.srcHeight = p.srcPtr.ysize;
  copy.dstXInBytes = p.dstPos.x;
  copy.dstY = p.dstPos.y;
  copy.dstZ = p.dstPos.z;
  copy.dstPitch = p.dstPtr.pitch;
  copy.dstHeight = p.dstPtr.ysize;
  copy.WidthInBytes = p.extent.width;
  copy.Height = p.extent.height;
  copy.Depth = p.extent.depth;
  return true;
}

SIMGPU_BOTH_FORMS(cudaMemcpy, _ptds, (void* to, const void* from, size_t size, cudaMemcpyKind kind), (to, from, size, kind)) {
  return copy_now<form>(to, from, size, kind);
}

SIMGPU_BOTH_FORMS(cudaMemcpyAsync, _ptsz, (void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream),
                  (to, from, size, kind, stream)) {
  return copy_on<form>(to, from, size, kind, stream);
}

SIMGPU_API cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t size) {
  if (const cudaError_t error = context_ready()) return finish(error);
  CUcontext to_context = nullptr;
  CUcontext from_context = nullptr;
  if (const cudaError_t error = primary_context(to_device, to_context)) return finish(error);
  if (const cudaError_t error = primary_context(from_device, from_context)) return finish(error);
  return finish(driver_call<row::cudaMemcpyPeer>(address(to), to_context, address(from), from_context, size));
}

SIMGPU_API cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t size,
                                           cudaStream_t stream) {
  if (const cudaError_t error = context_ready()) return finish(error);
  CUcontext to_context = nullptr;
  CUcontext from_context = nullptr;
  if (const cudaError_t error = primary_context(to_device, to_context)) return finish(error);
  if (const cudaError_t error = primary_context(from_device, from_context)) return finish(error);
  return finish(driver_call<row::cudaMemcpyPeerAsync>(address(to), to_context, address(from), from_context, size, stream));
}

SIMGPU_BOTH_FORMS(cudaMemcpy2D, _ptds,
                  (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                   cudaMemcpyKind kind),
                  (to, to_pitch, from, from_pitch, width, height, kind)) {
  CUDA_MEMCPY2D copy;
  if (const cudaError_t error = describe_2d(copy, to, to_pitch, from, from_pitch, width, height, kind)) return finish(error);
  if (width == 0 || height == 0) return finish(context_ready());
  return direct<row::cudaMemcpy2D, form>(&copy);
}

SIMGPU_BOTH_FORMS(cudaMemcpy2DAsync, _ptsz,
                  (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                   cudaMemcpyKind kind, cudaStream_t stream),
                  (to, to_pitch, from, from_pitch, width, height, kind, stream)) {
  CUDA_MEMCPY2D copy;
  if (const cudaError_t error = describe_2d(copy, to, to_pitch, from, from_pitch, width, height, kind)) return finish(error);
  if (width == 0 || height == 0) return finish(context_ready());
  return direct<row::cudaMemcpy2DAsync, form>(&copy, stream);
}

SIMGPU_BOTH_FORMS(cudaMemcpy3D, _ptds, (const cudaMemcpy3DParms* parameters), (parameters)) {
  CUDA_MEMCPY3D copy;
  if (parameters == nullptr) return finish(cudaErrorInvalidValue);
  if (!describe(*parameters, copy)) return finish(cudaErrorNotSupported);
  return direct<row::cudaMemcpy3D, form>(&copy);
}

SIMGPU_BOTH_FORMS(cudaMemcpy3DAsync, _ptsz, (const cudaMemcpy3DParms* parameters, cudaStream_t stream), (parameters, stream)) {
  CUDA_MEMCPY3D copy;
  if (parameters == nullptr) return finish(cudaErrorInvalidValue);
  if (!describe(*parameters, copy)) return finish(cudaErrorNotSupported);
  return direct<row::cudaMemcpy3DAsync, form>(&copy, stream);
}

}  // namespace simgpu::runtime
