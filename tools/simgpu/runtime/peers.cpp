// Memory and events of other devices and other processes.
#include "tools/simgpu/runtime/calls.hpp"

namespace simgpu::runtime {

SIMGPU_API cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return direct_without_context<row::cudaDeviceCanAccessPeer>(can, device, peer);
}

SIMGPU_API cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int source, int destination) {
  return direct_without_context<row::cudaDeviceGetP2PAttribute>(value, as<CUdevice_P2PAttribute>(attribute), source,
                                                                destination);
}

SIMGPU_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  if (const cudaError_t error = context_ready()) return finish(error);
  CUcontext context = nullptr;
  if (const cudaError_t error = primary_context(peer, context)) return finish(error);
  return finish(driver_call<row::cudaDeviceEnablePeerAccess>(context, flags));
}

SIMGPU_API cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (const cudaError_t error = context_ready()) return finish(error);
  CUcontext context = nullptr;
  if (const cudaError_t error = primary_context(peer, context)) return finish(error);
  return finish(driver_call<row::cudaDeviceDisablePeerAccess>(context));
}

SIMGPU_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return direct<row::cudaIpcGetMemHandle>(as<CUipcMemHandle*>(handle), address(pointer));
}

SIMGPU_API cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  return direct<row::cudaIpcOpenMemHandle>(as<CUdeviceptr*>(pointer), as<CUipcMemHandle>(handle), flags);
}

SIMGPU_API cudaError_t cudaIpcCloseMemHandle(void* pointer) { return direct<row::cudaIpcCloseMemHandle>(address(pointer)); }

SIMGPU_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return direct<row::cudaIpcGetEventHandle>(as<CUipcEventHandle*>(handle), event);
}

SIMGPU_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return direct<row::cudaIpcOpenEventHandle>(event, as<CUipcEventHandle>(handle));
}

}  // namespace simgpu::runtime
