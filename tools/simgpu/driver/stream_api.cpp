// Streams as the program sees them.
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "impl.hpp"
#include "tools/simgpu/driver/address_space.hpp"
#include "tools/simgpu/driver/calls.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/registry.hpp"

namespace simgpu {
namespace {

// Runs a function of the program on a worker, where driver calls are not permitted.
template <class Function>
CUresult run_host_function(Function function) {
  inside_host_function = true;
  function();
  inside_host_function = false;
  return CUDA_SUCCESS;
}

template <class Value>
bool condition_holds(Value now, Value wanted, unsigned condition) {
  switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ: return static_cast<std::make_signed_t<Value>>(now - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return now == wanted;
    case CU_STREAM_WAIT_VALUE_AND: return (now & wanted) != 0;
    default:  // NOR
      return static_cast<Value>(~(now | wanted)) != 0;
  }
}

// The word may be used for the moment of one access; false: the device faults.
template <class Value, class Access>
bool with_word(CUdeviceptr address, int device, bool write, Access access) {
  const std::lock_guard lock(memory_mutex());
  const Touch touch{address, address + sizeof(Value), write, true};
  if (!address_space().permitted(touch, device)) return false;
  access(std::atomic_ref<Value>(*reinterpret_cast<Value*>(address)));
  return true;
}

template <class Value>
CUresult wait_value(CUstream handle, CUdeviceptr address, Value value, unsigned flags) {
  StreamRef stream;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  if (address % sizeof(Value) != 0 || address == 0) return CUDA_ERROR_INVALID_VALUE;
  const unsigned condition = flags & 3u;
  Operation operation;
  operation.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  operation.run = [=, &context = stream->context] {
    for (;;) {
      bool holds = false;
      const auto look = [&](auto word) { holds = condition_holds<Value>(word.load(), value, condition); };
      if (!with_word<Value>(address, context.device, false, look)) return CUDA_ERROR_ILLEGAL_ADDRESS;
      if (holds || context.fault() != CUDA_SUCCESS) return CUDA_SUCCESS;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  };
  return submit(stream, std::move(operation));
}

template <class Value>
CUresult write_value(CUstream handle, CUdeviceptr address, Value value) {
  StreamRef stream;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  if (address % sizeof(Value) != 0 || address == 0) return CUDA_ERROR_INVALID_VALUE;
  Operation operation;
  operation.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  operation.run = [=, device = stream->context.device] {
    const bool done = with_word<Value>(address, device, true, [&](auto word) { word.store(value); });
    return done ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
  };
  return submit(stream, std::move(operation));
}

}  // namespace

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
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (capture_forbids_wait(*stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (!registry<Stream>().take(handle)) return CUDA_ERROR_INVALID_HANDLE;
  stream->context.retire_stream(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
  StreamRef stream;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  if (capture_forbids_wait(*stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return wait_for(stream->tail());
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
  operation.type = CU_GRAPH_NODE_TYPE_HOST;
  operation.writes_host = true;
  operation.run = [=] { return run_host_function([&] { function(data); }); };
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
    return run_host_function([&] { callback(handle, context.fault(), data); });
  };
  return submit(stream, std::move(operation));
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  return wait_value<std::uint32_t>(stream, addr, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  return wait_value<std::uint64_t>(stream, addr, value, flags);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int) {
  return write_value<std::uint32_t>(stream, addr, value);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int) {
  return write_value<std::uint64_t>(stream, addr, value);
}

}  // namespace impl
}  // namespace simgpu
