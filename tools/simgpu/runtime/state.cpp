#include "tools/simgpu/runtime/state.hpp"

#include <array>
#include <atomic>
#include <mutex>

#include "tools/simgpu/runtime/calls.hpp"

namespace simgpu::runtime {
namespace {

constexpr int kMostDevices = 64;

struct ThreadState {
  cudaError_t last = cudaSuccess;
  int device = 0;           // what cudaSetDevice said; its context may not be current yet
  unsigned reset_seen = 0;  // see `resets`
};
thread_local ThreadState thread;

std::mutex primary_mutex;
std::array<CUcontext, kMostDevices> primaries{};  // guarded by primary_mutex; null: not retained
// Counts cudaDeviceReset. A thread that is behind makes its context current anew: the one it has may be gone.
std::atomic<unsigned> resets{0};

// The primary context of the thread's device becomes current, unless the program has made another one current
// itself.
cudaError_t make_current() {
  CUcontext current = nullptr;
  const unsigned reset = resets.load();
  if (const CUresult result = driver_call<row::internal_current_context>(&current)) return translate(result);
  if (current != nullptr && thread.reset_seen == reset) return cudaSuccess;
  if (const cudaError_t error = primary_context(thread.device, current)) return error;
  if (const CUresult result = driver_call<row::internal_make_current>(current)) return translate(result);
  thread.reset_seen = reset;
  return cudaSuccess;
}

cudaError_t check_device(int device) {
  int count = 0;
  if (const CUresult result = driver_call<row::cudaGetDeviceCount>(&count)) return translate(result);
  return device >= 0 && device < count && device < kMostDevices ? cudaSuccess : cudaErrorInvalidDevice;
}

}  // namespace

cudaError_t driver_ready() {
  const CUresult state = load_driver();
  if (state == CUDA_SUCCESS) return cudaSuccess;
  return state == CUDA_ERROR_NOT_FOUND ? cudaErrorInsufficientDriver : translate(state);
}

cudaError_t context_ready() {
  if (const cudaError_t error = driver_ready()) return error;
  return make_current();
}

cudaError_t finish(cudaError_t error) {
  if (error != cudaSuccess) thread.last = error;
  return error;
}

cudaError_t current_device(int& device) {
  CUcontext current = nullptr;
  if (const CUresult result = driver_call<row::internal_current_context>(&current)) return translate(result);
  if (current == nullptr || thread.reset_seen != resets.load()) {
    device = thread.device;
    return cudaSuccess;
  }
  return translate(driver_call<row::cudaGetDevice>(&device));
}

cudaError_t primary_context(int device, CUcontext& context) {
  if (device < 0 || device >= kMostDevices) return cudaErrorInvalidDevice;
  std::lock_guard lock(primary_mutex);
  CUcontext& retained = primaries[static_cast<std::size_t>(device)];
  if (retained == nullptr) {
    if (const CUresult result = driver_call<row::internal_retain_primary>(&retained, device)) {
      retained = nullptr;
      return translate(result);
    }
  }
  context = retained;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaGetLastError() {
  const cudaError_t error = thread.last;
  thread.last = cudaSuccess;
  return error;
}

SIMGPU_API cudaError_t cudaPeekAtLastError() { return thread.last; }

SIMGPU_API cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return finish(cudaErrorInvalidValue);
  *count = 0;
  return direct_without_context<row::cudaGetDeviceCount>(count);
}

SIMGPU_API cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return finish(cudaErrorInvalidValue);
  if (const cudaError_t error = driver_ready()) return finish(error);
  return finish(current_device(*device));
}

SIMGPU_API cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = driver_ready()) return finish(error);
  if (const cudaError_t error = check_device(device)) return finish(error);
  CUcontext context = nullptr;
  if (const cudaError_t error = primary_context(device, context)) return finish(error);
  if (const CUresult result = driver_call<row::internal_make_current>(context)) return finish(result);
  thread.device = device;
  thread.reset_seen = resets.load();
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaInitDevice(int device, unsigned int, unsigned int) {
  if (const cudaError_t error = driver_ready()) return finish(error);
  if (const cudaError_t error = check_device(device)) return finish(error);
  CUcontext context = nullptr;
  return finish(primary_context(device, context));
}

SIMGPU_API cudaError_t cudaDeviceReset() {
  if (const cudaError_t error = driver_ready()) return finish(error);
  int device = 0;
  if (const cudaError_t error = current_device(device)) return finish(error);
  if (device >= kMostDevices) return finish(cudaErrorInvalidDevice);
  std::lock_guard lock(primary_mutex);
  const CUresult result = driver_call<row::cudaDeviceReset>(device);
  if (result == CUDA_SUCCESS) {
    primaries[static_cast<std::size_t>(device)] = nullptr;
    resets.fetch_add(1);
  }
  return finish(result);
}

}  // namespace simgpu::runtime
