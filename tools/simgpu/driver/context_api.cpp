// Contexts: primary and created, current ones, peers, limits.
#include <algorithm>
#include <array>

#include "impl.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/memory.hpp"
#include "tools/simgpu/driver/process.hpp"

namespace simgpu {
namespace {

// References to the primary contexts. The lock is held over creation and destruction, so that both are whole
// for others.
struct PrimaryCounts {
  std::mutex mutex;
  std::array<unsigned, kMaxDevices> count{};
};
PrimaryCounts& primary_counts() {
  static PrimaryCounts* const instance = new PrimaryCounts;
  return *instance;
}

CUresult chosen_context(CUcontext handle, Context*& context) {
  if (!handle) return usable_context(context);
  context = find_context(handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  return context->alive() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

std::size_t default_limit(CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE: return 1024;
    case CU_LIMIT_PRINTF_FIFO_SIZE: return 1u << 20;
    case CU_LIMIT_MALLOC_HEAP_SIZE: return 8u << 20;
    default: return 0;
  }
}

}  // namespace

namespace impl {

CUresult cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice device) {
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context& context = primary_context(device);
  const std::lock_guard lock(primary_counts().mutex);
  if (!context.alive()) {
    if (const CUresult result = context.activate()) return result;
  }
  ++primary_counts().count[static_cast<std::size_t>(device)];
  *handle = handle_of(&context);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  const std::lock_guard lock(primary_counts().mutex);
  unsigned& count = primary_counts().count[static_cast<std::size_t>(device)];
  if (count == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--count == 0) primary_context(device).deactivate();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  const std::lock_guard lock(primary_counts().mutex);
  primary_counts().count[static_cast<std::size_t>(device)] = 0;
  if (primary_context(device).alive()) primary_context(device).deactivate();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  primary_context(device).flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (flags) *flags = primary_context(device).flags;
  if (active) *active = primary_context(device).alive();
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* handle, unsigned int flags, CUdevice device) {
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context* context = nullptr;
  if (const CUresult result = create_context(device, flags, context)) return result;
  push_current(context);
  *handle = handle_of(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v3(CUcontext* handle, CUexecAffinityParam*, int affinities, unsigned int flags, CUdevice device) {
  return affinities != 0 ? CUDA_ERROR_NOT_SUPPORTED : impl::cuCtxCreate_v2(handle, flags, device);
}

#if CUDA_VERSION >= 12050
CUresult cuCtxCreate_v4(CUcontext* handle, CUctxCreateParams* params, unsigned int flags, CUdevice device) {
  return params ? CUDA_ERROR_NOT_SUPPORTED : impl::cuCtxCreate_v2(handle, flags, device);
}
#endif

CUresult cuCtxDestroy_v2(CUcontext handle) {
  Context* const context = find_context(handle);
  if (!context || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (current_context() == context) pop_current();
  context->deactivate();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* handle) {
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  *handle = handle_of(current_context());
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  Context* const context = handle ? find_context(handle) : nullptr;
  if (handle && !context) return CUDA_ERROR_INVALID_CONTEXT;
  if (context && !context->alive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  replace_current(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  Context* const context = find_context(handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return push_current(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxPopCurrent_v2(CUcontext* handle) {
  Context* const context = pop_current();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (handle) *handle = handle_of(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  const Context* const context = current_context();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device;
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 13000
CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  Context* context = nullptr;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = chosen_context(handle, context)) return result;
  *device = context->device;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
  Context* context = nullptr;
  if (const CUresult result = chosen_context(handle, context)) return result;
  if (capture_forbids()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const CUresult result = context->synchronize();
  trim_pools_to_thresholds();
  return result;
}
#endif

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  Context* context = nullptr;
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = chosen_context(handle, context)) return result;
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  Context* context = nullptr;
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = usable_context(context)) return result;
  *flags = context->flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  context->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  Context* context = nullptr;
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = chosen_context(handle, context)) return result;
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  if (capture_forbids()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const CUresult result = context->synchronize();
  trim_pools_to_thresholds();
  return result;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  const std::lock_guard lock(context->state_mutex);
  context->limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  Context* context = nullptr;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = usable_context(context)) return result;
  const std::lock_guard lock(context->state_mutex);
  const auto found = context->limits.find(limit);
  *value = found == context->limits.end() ? default_limit(limit) : found->second;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_FUNC_CACHE_PREFER_NONE;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache) { return CUDA_SUCCESS; }

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig) { return CUDA_SUCCESS; }
CUresult cuCtxResetPersistingL2Cache() { return CUDA_SUCCESS; }

CUresult cuCtxEnablePeerAccess(CUcontext peer_handle, unsigned int flags) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  const Context* const peer = find_context(peer_handle);
  if (!peer || !peer->alive()) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (peer->device == context->device) return CUDA_ERROR_INVALID_DEVICE;
  const std::lock_guard lock(context->state_mutex);
  return context->peers.insert(peer->device).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer_handle) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  const Context* const peer = find_context(peer_handle);
  if (!peer) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(context->state_mutex);
  return context->peers.erase(peer->device) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

}  // namespace impl
}  // namespace simgpu
