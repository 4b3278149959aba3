// The driver's many names for copies and memsets.
#include "impl.hpp"
#include "tools/simgpu/driver/calls.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/copy.hpp"

namespace simgpu {
namespace {

enum Form { kSynchronous, kAsync };

CopySide device_side(CUdeviceptr address) { return {address, 0, 0, true}; }
CopySide any_side(CUdeviceptr address) { return {address, 0, 0, false}; }
CopySide host_side(const void* address) { return {reinterpret_cast<std::uintptr_t>(address), 0, 0, false}; }

CUresult linear(CopySide destination, CopySide source, std::size_t size, CUstream stream, Form form) {
  return copy({destination, source, size, 1, 1, stream, form == kSynchronous});
}

// One side of a 2D or 3D copy. False for arrays, which don't exist here.
bool place_side(CUmemorytype type, const void* host, CUdeviceptr device, std::size_t pitch, std::size_t height,
                CopySide& side) {
  if (type == CU_MEMORYTYPE_HOST) side = host_side(host);
  if (type == CU_MEMORYTYPE_DEVICE) side = device_side(device);
  if (type == CU_MEMORYTYPE_UNIFIED) side = any_side(device);
  side.pitch = pitch;
  side.slice = pitch * height;
  return type != CU_MEMORYTYPE_ARRAY;
}

CUresult shaped(const CUDA_MEMCPY3D* shape, CUstream stream, Form form) {
  if (!shape) return CUDA_ERROR_INVALID_VALUE;
  CopyRequest request;
  request.stream = stream;
  request.synchronous = form == kSynchronous;
  if (const CUresult result = request_of(*shape, request)) return result;
  return copy(request);
}

CUresult shaped(const CUDA_MEMCPY2D* shape, CUstream stream, Form form) {
  if (!shape) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D cube{};
  cube.srcXInBytes = shape->srcXInBytes;
  cube.srcY = shape->srcY;
  cube.srcMemoryType = shape->srcMemoryType;
  cube.srcHost = shape->srcHost;
  cube.srcDevice = shape->srcDevice;
  cube.srcPitch = shape->srcPitch;
  cube.dstXInBytes = shape->dstXInBytes;
  cube.dstY = shape->dstY;
  cube.dstMemoryType = shape->dstMemoryType;
  cube.dstHost = shape->dstHost;
  cube.dstDevice = shape->dstDevice;
  cube.dstPitch = shape->dstPitch;
  cube.WidthInBytes = shape->WidthInBytes;
  cube.Height = shape->Height;
  cube.Depth = 1;
  return shaped(&cube, stream, form);
}

CUresult shaped(const CUDA_MEMCPY3D_PEER* shape, CUstream stream, Form form) {
  if (!shape) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D cube{};
  cube.srcXInBytes = shape->srcXInBytes;
  cube.srcY = shape->srcY;
  cube.srcZ = shape->srcZ;
  cube.srcMemoryType = shape->srcMemoryType;
  cube.srcHost = shape->srcHost;
  cube.srcDevice = shape->srcDevice;
  cube.srcPitch = shape->srcPitch;
  cube.srcHeight = shape->srcHeight;
  cube.dstXInBytes = shape->dstXInBytes;
  cube.dstY = shape->dstY;
  cube.dstZ = shape->dstZ;
  cube.dstMemoryType = shape->dstMemoryType;
  cube.dstHost = shape->dstHost;
  cube.dstDevice = shape->dstDevice;
  cube.dstPitch = shape->dstPitch;
  cube.dstHeight = shape->dstHeight;
  cube.WidthInBytes = shape->WidthInBytes;
  cube.Height = shape->Height;
  cube.Depth = shape->Depth;
  return shaped(&cube, stream, form);
}

bool contexts_exist(CUcontext a, CUcontext b) {
  const Context* const first = find_context(a);
  const Context* const second = find_context(b);
  return first && second && first->alive() && second->alive();
}

CUresult memset_rows(CUdeviceptr address, std::size_t pitch, std::uint32_t value, unsigned element, std::size_t width,
                     std::size_t height, CUstream stream, Form form) {
  if (height > 1 && (pitch % element != 0 || width > pitch / element)) return CUDA_ERROR_INVALID_VALUE;
  return fill({address, pitch, value, element, width, height, stream, form == kSynchronous});
}

#if CUDA_VERSION >= 12080
// Batches aren't for the legacy default stream. The copies of one are unordered among themselves; here they run one by one.
bool batch_stream(CUstream stream) { return stream != CU_STREAM_LEGACY && (stream != nullptr || per_thread_default_stream); }

CUresult copy_batch(const CUdeviceptr* dsts, const CUdeviceptr* srcs, const std::size_t* sizes, std::size_t count,
                    const CUmemcpyAttributes* attributes, const std::size_t* begins, std::size_t attribute_count,
                    std::size_t* failed, CUstream stream) {
  if (failed) *failed = SIZE_MAX;  // not the fault of one copy
  if (!dsts || !srcs || !sizes || !attributes || !begins || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!batch_stream(stream) || attribute_count == 0 || attribute_count > count || begins[0] != 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < attribute_count; ++i) {
    const auto order = attributes[i].srcAccessOrder;
    if (order < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || order > CU_MEMCPY_SRC_ACCESS_ORDER_ANY) return CUDA_ERROR_INVALID_VALUE;
    if (begins[i] >= count || (i > 0 && begins[i] <= begins[i - 1])) return CUDA_ERROR_INVALID_VALUE;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const CUresult result = linear(any_side(dsts[i]), any_side(srcs[i]), sizes[i], stream, kAsync);
    if (result == CUDA_SUCCESS) continue;
    if (failed) *failed = i;
    return result;
  }
  return CUDA_SUCCESS;
}

CopySide operand_side(const CUmemcpy3DOperand& operand, const CUextent3D& extent) {
  const std::size_t row = operand.op.ptr.rowLength ? operand.op.ptr.rowLength : extent.width;
  const std::size_t layer = operand.op.ptr.layerHeight ? operand.op.ptr.layerHeight : extent.height;
  return {operand.op.ptr.ptr, row, row * layer, false};
}

CUresult shaped_batch(std::size_t count, const CUDA_MEMCPY3D_BATCH_OP* operations, std::size_t* failed,
                      unsigned long long flags, CUstream stream) {
  if (failed) *failed = SIZE_MAX;
  if (count == 0 || !operations || flags != 0 || !batch_stream(stream)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const CUDA_MEMCPY3D_BATCH_OP& o = operations[i];
    const bool pointers = o.src.type == CU_MEMCPY_OPERAND_TYPE_POINTER && o.dst.type == CU_MEMCPY_OPERAND_TYPE_POINTER;
    CUresult result = pointers ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    if (o.extent.width == 0 || o.extent.height == 0 || o.extent.depth == 0) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
      result = copy({operand_side(o.dst, o.extent), operand_side(o.src, o.extent), o.extent.width, o.extent.height,
                     o.extent.depth, stream, false});
    }
    if (result == CUDA_SUCCESS) continue;
    if (failed) *failed = i;
    return result;
  }
  return CUDA_SUCCESS;
}
#endif

}  // namespace

CUresult request_of(const CUDA_MEMCPY3D& s, CopyRequest& request) {
  request.width = s.WidthInBytes;
  request.height = s.Height;
  request.depth = s.Depth;
  // A pitch or height of 0 means "as wide or high as the copy".
  const std::size_t source_pitch = s.srcPitch ? s.srcPitch : s.WidthInBytes;
  const std::size_t target_pitch = s.dstPitch ? s.dstPitch : s.WidthInBytes;
  const bool pitches_valid = s.srcXInBytes + s.WidthInBytes <= source_pitch && s.dstXInBytes + s.WidthInBytes <= target_pitch;
  if (s.Height * s.Depth > 1 && !pitches_valid) return CUDA_ERROR_INVALID_VALUE;
  const bool linear_memory =
      place_side(s.srcMemoryType, s.srcHost, s.srcDevice, source_pitch, s.srcHeight ? s.srcHeight : s.Height, request.source) &&
      place_side(s.dstMemoryType, s.dstHost, s.dstDevice, target_pitch, s.dstHeight ? s.dstHeight : s.Height,
                 request.destination);
  if (!linear_memory) return CUDA_ERROR_NOT_SUPPORTED;
  request.source.address += s.srcZ * request.source.slice + s.srcY * source_pitch + s.srcXInBytes;
  request.destination.address += s.dstZ * request.destination.slice + s.dstY * target_pitch + s.dstXInBytes;
  return CUDA_SUCCESS;
}

namespace impl {

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size) {
  return linear(any_side(dst), any_side(src), size, nullptr, kSynchronous);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream) {
  return linear(any_side(dst), any_side(src), size, stream, kAsync);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void* src, size_t size) {
  return linear(device_side(dst), host_side(src), size, nullptr, kSynchronous);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t size, CUstream stream) {
  return linear(device_side(dst), host_side(src), size, stream, kAsync);
}

CUresult cuMemcpyDtoH_v2(void* dst, CUdeviceptr src, size_t size) {
  return linear(host_side(dst), device_side(src), size, nullptr, kSynchronous);
}

CUresult cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t size, CUstream stream) {
  return linear(host_side(dst), device_side(src), size, stream, kAsync);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size) {
  return linear(device_side(dst), device_side(src), size, nullptr, kSynchronous);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream) {
  return linear(device_side(dst), device_side(src), size, stream, kAsync);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t size) {
  if (!contexts_exist(dst_context, src_context)) return CUDA_ERROR_INVALID_CONTEXT;
  return linear(device_side(dst), device_side(src), size, nullptr, kSynchronous);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t size,
                           CUstream stream) {
  if (!contexts_exist(dst_context, src_context)) return CUDA_ERROR_INVALID_CONTEXT;
  return linear(device_side(dst), device_side(src), size, stream, kAsync);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* shape) { return shaped(shape, nullptr, kSynchronous); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* shape, CUstream stream) { return shaped(shape, stream, kAsync); }
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* shape) { return shaped(shape, nullptr, kSynchronous); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* shape, CUstream stream) { return shaped(shape, stream, kAsync); }
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* shape) { return shaped(shape, nullptr, kSynchronous); }
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* shape) { return shaped(shape, nullptr, kSynchronous); }
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* shape, CUstream stream) { return shaped(shape, stream, kAsync); }

#if CUDA_VERSION >= 12080
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attributes, size_t* begins, size_t attribute_count, CUstream stream) {
  size_t failed = 0;
  return copy_batch(dsts, srcs, sizes, count, attributes, begins, attribute_count, &failed, stream);
}

// The form of CUDA 12.8 tells which copy was refused.
CUresult cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count, CUmemcpyAttributes* attributes,
                            size_t* begins, size_t attribute_count, size_t* failed, CUstream stream) {
  return copy_batch(dsts, srcs, sizes, count, attributes, begins, attribute_count, failed, stream);
}

CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, unsigned long long flags, CUstream stream) {
  size_t failed = 0;
  return shaped_batch(count, operations, &failed, flags, stream);
}

CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, size_t* failed, unsigned long long flags,
                              CUstream stream) {
  return shaped_batch(count, operations, failed, flags, stream);
}
#endif

CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count) {
  return memset_rows(dst, 0, value, 1, count, 1, nullptr, kSynchronous);
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
  return memset_rows(dst, 0, value, 1, count, 1, stream, kAsync);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height) {
  return memset_rows(dst, pitch, value, 1, width, height, nullptr, kSynchronous);
}

CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream) {
  return memset_rows(dst, pitch, value, 1, width, height, stream, kAsync);
}

CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count) {
  return memset_rows(dst, 0, value, 2, count, 1, nullptr, kSynchronous);
}

CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream) {
  return memset_rows(dst, 0, value, 2, count, 1, stream, kAsync);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height) {
  return memset_rows(dst, pitch, value, 2, width, height, nullptr, kSynchronous);
}

CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height, CUstream stream) {
  return memset_rows(dst, pitch, value, 2, width, height, stream, kAsync);
}

CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t count) {
  return memset_rows(dst, 0, value, 4, count, 1, nullptr, kSynchronous);
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream) {
  return memset_rows(dst, 0, value, 4, count, 1, stream, kAsync);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height) {
  return memset_rows(dst, pitch, value, 4, width, height, nullptr, kSynchronous);
}

CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height, CUstream stream) {
  return memset_rows(dst, pitch, value, 4, width, height, stream, kAsync);
}

}  // namespace impl
}  // namespace simgpu
