// The families in which the two maps use driver entries of different prototypes. Each operation has one
// overload per prototype; a row may name any entry for which there is one, and another is a compile error,
// not a wrong call. The stream-ordered forms of synchronous operations run on the default stream of their
// form and wait for it.
#pragma once

#include "tools/simgpu/runtime/calls.hpp"

namespace simgpu::runtime {

inline CUstream default_stream(Form form) {
  // What the driver calls CU_STREAM_LEGACY and CU_STREAM_PER_THREAD.
  return form == Form::legacy ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
}

template <Form form = Form::legacy>
CUresult wait_for_default_stream(CUresult submitted) {
  if (submitted != CUDA_SUCCESS) return submitted;
  return driver_call<row::internal_wait, Form::legacy>(default_stream(form));
}

using AllocateEntry = CUresult(CUDAAPI*)(CUdeviceptr*, std::size_t);
using AllocateAsyncEntry = CUresult(CUDAAPI*)(CUdeviceptr*, std::size_t, CUstream);
using FreeEntry = CUresult(CUDAAPI*)(CUdeviceptr);
using FreeAsyncEntry = CUresult(CUDAAPI*)(CUdeviceptr, CUstream);

// Memory from the stream-ordered allocator is remembered, because only that may be freed stream-ordered.
void remember_stream_ordered(CUdeviceptr pointer);
bool forget_stream_ordered(CUdeviceptr pointer);

inline CUresult allocate(AllocateEntry entry, CUdeviceptr* pointer, std::size_t size) { return entry(pointer, size); }
inline CUresult allocate(AllocateAsyncEntry entry, CUdeviceptr* pointer, std::size_t size) {
  const CUresult result = wait_for_default_stream(entry(pointer, size, default_stream(Form::legacy)));
  if (result == CUDA_SUCCESS) remember_stream_ordered(*pointer);
  return result;
}

inline CUresult release(FreeEntry entry, CUdeviceptr pointer) { return entry(pointer); }
inline CUresult release(FreeAsyncEntry entry, CUdeviceptr pointer) {
  if (!forget_stream_ordered(pointer)) return driver_call<row::internal_free>(pointer);
  return wait_for_default_stream(entry(pointer, default_stream(Form::legacy)));
}

using CopyToDeviceEntry = CUresult(CUDAAPI*)(CUdeviceptr, const void*, std::size_t);
using CopyToHostEntry = CUresult(CUDAAPI*)(void*, CUdeviceptr, std::size_t);
using CopyEntry = CUresult(CUDAAPI*)(CUdeviceptr, CUdeviceptr, std::size_t);
using CopyToDeviceAsyncEntry = CUresult(CUDAAPI*)(CUdeviceptr, const void*, std::size_t, CUstream);
using CopyToHostAsyncEntry = CUresult(CUDAAPI*)(void*, CUdeviceptr, std::size_t, CUstream);
using CopyAsyncEntry = CUresult(CUDAAPI*)(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);

template <Form>
CUresult copy(CopyToDeviceEntry entry, void* to, const void* from, std::size_t size) {
  return entry(address(to), from, size);
}
template <Form>
CUresult copy(CopyToHostEntry entry, void* to, const void* from, std::size_t size) {
  return entry(to, address(from), size);
}
template <Form>
CUresult copy(CopyEntry entry, void* to, const void* from, std::size_t size) {
  return entry(address(to), address(from), size);
}
template <Form form>
CUresult copy(CopyAsyncEntry entry, void* to, const void* from, std::size_t size) {
  return wait_for_default_stream<form>(entry(address(to), address(from), size, default_stream(form)));
}

inline CUresult copy_async(CopyToDeviceAsyncEntry entry, void* to, const void* from, std::size_t size, CUstream stream) {
  return entry(address(to), from, size, stream);
}
inline CUresult copy_async(CopyToHostAsyncEntry entry, void* to, const void* from, std::size_t size, CUstream stream) {
  return entry(to, address(from), size, stream);
}
inline CUresult copy_async(CopyAsyncEntry entry, void* to, const void* from, std::size_t size, CUstream stream) {
  return entry(address(to), address(from), size, stream);
}

using FillEntry = CUresult(CUDAAPI*)(CUdeviceptr, unsigned char, std::size_t);
using FillAsyncEntry = CUresult(CUDAAPI*)(CUdeviceptr, unsigned char, std::size_t, CUstream);

template <Form>
CUresult fill(FillEntry entry, void* pointer, int value, std::size_t size) {
  return entry(address(pointer), static_cast<unsigned char>(value), size);
}
template <Form form>
CUresult fill(FillAsyncEntry entry, void* pointer, int value, std::size_t size) {
  return wait_for_default_stream<form>(entry(address(pointer), static_cast<unsigned char>(value), size, default_stream(form)));
}

using LaunchEntry = PFN_cuLaunchKernel_v4000;
using LaunchExEntry = PFN_cuLaunchKernelEx_v11060;
using LaunchCooperativeEntry = PFN_cuLaunchCooperativeKernel_v9000;

struct KernelLaunch {
  CUfunction function;
  dim3 grid, block;
  std::size_t shared;
  CUstream stream;
  void** parameters;
  bool cooperative;
};

inline CUresult launch(LaunchEntry entry, const KernelLaunch& l) {
  return entry(l.function, l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y, l.block.z, static_cast<unsigned>(l.shared),
               l.stream, l.parameters, nullptr);
}
inline CUresult launch(LaunchCooperativeEntry entry, const KernelLaunch& l) {
  return entry(l.function, l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y, l.block.z, static_cast<unsigned>(l.shared),
               l.stream, l.parameters);
}
inline CUresult launch(LaunchExEntry entry, const KernelLaunch& l) {
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  CUlaunchConfig config{};
  config.gridDimX = l.grid.x;
  config.gridDimY = l.grid.y;
  config.gridDimZ = l.grid.z;
  config.blockDimX = l.block.x;
  config.blockDimY = l.block.y;
  config.blockDimZ = l.block.z;
  config.sharedMemBytes = static_cast<unsigned>(l.shared);
  config.hStream = l.stream;
  config.attrs = &cooperative;
  config.numAttrs = l.cooperative ? 1 : 0;
  return entry(&config, l.function, l.parameters, nullptr);
}

}  // namespace simgpu::runtime
