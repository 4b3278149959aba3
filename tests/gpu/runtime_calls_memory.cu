// Devices, memory, pools, copies and fills.
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>

#include "tests/gpu/runtime_calls.hpp"

void call_devices(Scene& scene) {
  Report& report = scene.report;
  int number = 0, least = 0;
  unsigned flags = 0;
  size_t limit = 0;
  char bus[32] = "";
  cudaDeviceProp properties{};
  cudaFuncCache cache{};
  CALL(report, cudaDeviceGetAttribute(&number, cudaDevAttrWarpSize, 0));
  CALL(report, cudaGetDeviceProperties(&properties, 0));
  CALL(report, cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
  CALL(report, cudaDeviceGetByPCIBusId(&number, bus));
  CALL(report, cudaSetDeviceFlags(cudaDeviceScheduleAuto));
  CALL(report, cudaSetDevice(0));
  CALL(report, cudaInitDevice(0, 0, 0));
  CASE(report, "first:cudaFree", cudaFree(nullptr));  // the context, if the calls before it made none
  CALL(report, cudaGetDevice(&number));
  CALL(report, cudaGetDeviceFlags(&flags));
  CALL(report, cudaDeviceGetStreamPriorityRange(&least, &number));
  CALL(report, cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  CALL(report, cudaDeviceSetLimit(cudaLimitStackSize, limit));
  CALL(report, cudaDeviceGetCacheConfig(&cache));
  CALL(report, cudaDeviceSetCacheConfig(cudaFuncCachePreferNone));
  CALL(report, cudaCtxResetPersistingL2Cache());
  CALL(report, cudaDeviceSynchronize());
  CALL(report, cudaDeviceCanAccessPeer(&number, 0, scene.peer));
  CALL(report, cudaDeviceGetP2PAttribute(&number, cudaDevP2PAttrPerformanceRank, 0, scene.peer));
  CALL(report, cudaDeviceEnablePeerAccess(scene.peer, 0));
  CALL(report, cudaDeviceDisablePeerAccess(scene.peer));
  // A code that the runtime has no text of its own for.
  report.step("cudaGetErrorString",
              [] { return cudaGetErrorString(cudaErrorIllegalInstruction) != nullptr ? cudaSuccess : cudaErrorUnknown; });
  CALL(report, cudaProfilerStart());
  CALL(report, cudaStreamCreateWithFlags(&scene.stream, cudaStreamNonBlocking));
}

void call_memory(Scene& scene) {
  Report& report = scene.report;
  size_t free = 0, total = 0, pitch = 0;
  unsigned flags = 0;
  void *device = nullptr, *managed = nullptr, *pitched = nullptr;
  cudaPointerAttributes attributes{};
  CALL(report, cudaMalloc(&scene.block, kBlock));
  CASE(report, "cudaMalloc:again", cudaMalloc(&scene.second, kBlock));
  CALL(report, cudaMallocPitch(&pitched, &pitch, 1000, 16));
  cudaFree(pitched);
  CALL(report, cudaMemGetInfo(&free, &total));
  CALL(report, cudaHostAlloc(reinterpret_cast<void**>(&scene.pinned), kBlock, cudaHostAllocMapped));
  void* through_malloc_host = nullptr;
  CALL(report, cudaMallocHost(&through_malloc_host, kBlock));
  cudaFreeHost(through_malloc_host);
  CALL(report, cudaHostGetDevicePointer(&device, scene.pinned, 0));
  CALL(report, cudaHostGetFlags(&flags, scene.pinned));
  scene.pageable = static_cast<char*>(std::aligned_alloc(4096, kBlock));
  std::memset(scene.pageable, 0, kBlock);
  CALL(report, cudaHostRegister(scene.pageable, kBlock, cudaHostRegisterDefault));
  CALL(report, cudaHostUnregister(scene.pageable));
  CALL(report, cudaPointerGetAttributes(&attributes, scene.block));

  cudaMemLocation here{};
  here.type = cudaMemLocationTypeDevice;
  int prefers = 0;
  CALL(report, cudaMallocManaged(&managed, kBlock));
  CALL(report, cudaMemAdvise(managed, kBlock, cudaMemAdviseSetPreferredLocation, here));
  CALL(report, cudaMemPrefetchAsync(managed, kBlock, here, 0, scene.stream));
  CALL(report, cudaMemRangeGetAttribute(&prefers, sizeof(prefers), cudaMemRangeAttributePreferredLocation, managed, kBlock));
  CALL(report, cudaStreamAttachMemAsync(scene.stream, managed, 0, cudaMemAttachSingle));
  cudaStreamSynchronize(scene.stream);
  CASE(report, "cudaFree:managed", cudaFree(managed));
}

void call_pools(Scene& scene) {
  Report& report = scene.report;
  cudaMemPool_t pool = nullptr, made = nullptr;
  CALL(report, cudaDeviceGetDefaultMemPool(&pool, 0));
  CALL(report, cudaDeviceGetMemPool(&pool, 0));
  CALL(report, cudaDeviceSetMemPool(0, pool));
  void* block = nullptr;
  CALL(report, cudaMallocAsync(&block, 4096, scene.stream));
  CALL(report, cudaFreeAsync(block, scene.stream));
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  CALL(report, cudaMemPoolCreate(&made, &properties));
  unsigned long long threshold = 1 << 20;
  CALL(report, cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &threshold));
  CALL(report, cudaMemPoolGetAttribute(made, cudaMemPoolAttrReleaseThreshold, &threshold));
  cudaMemAccessDesc access{};
  access.location = properties.location;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  cudaMemAccessFlags flags{};
  CALL(report, cudaMemPoolSetAccess(made, &access, 1));
  CALL(report, cudaMemPoolGetAccess(&flags, made, &access.location));
  CALL(report, cudaMallocFromPoolAsync(&block, 4096, made, scene.stream));
  cudaFreeAsync(block, scene.stream);
  cudaStreamSynchronize(scene.stream);
  CALL(report, cudaMemPoolTrimTo(made, 0));
  CALL(report, cudaMemPoolDestroy(made));
}

void call_copies(Scene& scene) {
  Report& report = scene.report;
  void *block = scene.block, *second = scene.second;
  char *host = scene.pageable, *pinned = scene.pinned;
  cudaStream_t stream = scene.stream;
  CASE(report, "cudaMemcpy:HostToHost", cudaMemcpy(host, pinned, 4096, cudaMemcpyHostToHost));
  CASE(report, "cudaMemcpy:HostToDevice", cudaMemcpy(block, host, 4096, cudaMemcpyHostToDevice));
  CASE(report, "cudaMemcpy:DeviceToHost", cudaMemcpy(host, block, 4096, cudaMemcpyDeviceToHost));
  CASE(report, "cudaMemcpy:DeviceToDevice", cudaMemcpy(second, block, 4096, cudaMemcpyDeviceToDevice));
  CASE(report, "cudaMemcpy:Default", cudaMemcpy(block, host, 4096, cudaMemcpyDefault));
  CASE(report, "cudaMemcpyAsync:HostToHost", cudaMemcpyAsync(host, pinned, 4096, cudaMemcpyHostToHost, stream));
  CASE(report, "cudaMemcpyAsync:HostToDevice", cudaMemcpyAsync(block, pinned, 4096, cudaMemcpyHostToDevice, stream));
  CASE(report, "cudaMemcpyAsync:DeviceToHost", cudaMemcpyAsync(pinned, block, 4096, cudaMemcpyDeviceToHost, stream));
  CASE(report, "cudaMemcpyAsync:DeviceToDevice", cudaMemcpyAsync(second, block, 4096, cudaMemcpyDeviceToDevice, stream));
  CASE(report, "cudaMemcpyAsync:Default", cudaMemcpyAsync(block, pinned, 4096, cudaMemcpyDefault, stream));
  CALL(report, cudaMemcpyPeer(second, 0, block, 0, 4096));
  CALL(report, cudaMemcpyPeerAsync(second, 0, block, 0, 4096, stream));
  CALL(report, cudaMemcpy2D(block, 512, host, 256, 100, 8, cudaMemcpyHostToDevice));
  CALL(report, cudaMemcpy2DAsync(block, 512, pinned, 256, 100, 8, cudaMemcpyHostToDevice, stream));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(pinned, 256, 256, 4);
  copy.dstPtr = make_cudaPitchedPtr(block, 256, 256, 4);
  copy.extent = make_cudaExtent(100, 4, 2);
  copy.kind = cudaMemcpyHostToDevice;
  CALL(report, cudaMemcpy3D(&copy));
  CALL(report, cudaMemcpy3DAsync(&copy, stream));
  CALL(report, cudaMemset(block, 1, 4096));
  CALL(report, cudaMemset2D(block, 512, 1, 100, 8));
  CALL(report, cudaMemsetAsync(block, 1, 4096, stream));
  CALL(report, cudaMemset2DAsync(block, 512, 1, 100, 8, stream));
  CASE(report, "cudaStreamSynchronize:after_copies", cudaStreamSynchronize(stream));
}
