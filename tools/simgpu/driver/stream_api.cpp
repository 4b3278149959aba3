// Streams as the program sees them.
#include <memory>
#include <utility>

#include "impl.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/host_work.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/memory.hpp"
#include "tools/simgpu/driver/registry.hpp"

namespace simgpu {
namespace impl {

CUresult cuStreamCreateWithPriority(CUstream* handle, unsigned int flags, int priority) {
  if (!handle || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  StreamRef stream = context->create_stream(flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
  *handle = reinterpret_cast<CUstream>(stream.get());
  registry<Stream>().add(std::move(stream));
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* handle, unsigned int flags) { return impl::cuStreamCreateWithPriority(handle, flags, 0); }

// The stream's work goes on; its worker ends with it.
CUresult cuStreamDestroy_v2(CUstream handle) {
  const StreamRef stream = registry<Stream>().find(handle);
  if (!stream) {
    misuse("use of a stream that is not there", "cuStreamDestroy");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (capture_forbids_wait(*stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (!registry<Stream>().take(handle)) return CUDA_ERROR_INVALID_HANDLE;
  stream->context.retire_stream(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
  StreamRef stream;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  if (capture_forbids_wait(*stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const CUresult result = wait_for(stream->tail());
  trim_pools_to_thresholds();
  return result;
}

CUresult cuStreamQuery(CUstream handle) {
  StreamRef stream;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  if (capture_forbids_wait(*stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return stream->idle() ? stream->context.fault() : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  StreamRef stream;
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  StreamRef stream;
  if (!priority) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  StreamRef stream;
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  *id = stream->id;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  StreamRef stream;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  *context = handle_of(&stream->context);
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 12080
CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
  StreamRef stream;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  *device = stream->context.device;
  return CUDA_SUCCESS;
}
#endif

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  StreamRef stream;
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  Operation operation;
  operation.writes_host = true;
  operation.work = std::make_shared<HostWork>(CUDA_HOST_NODE_PARAMS{function, data});
  return submit(stream, std::move(operation));
}

// Unlike a host function a callback also runs on a faulted context, with the error.
CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned int flags) {
  StreamRef stream;
  if (!callback || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  if (capture_forbids_wait(*stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Operation operation;
  operation.always = true;
  operation.writes_host = true;
  operation.run = [=, &context = stream->context] {
    run_host_function([&] { callback(handle, context.fault(), data); });
    return CUDA_SUCCESS;
  };
  return submit(stream, std::move(operation));
}

}  // namespace impl
}  // namespace simgpu
