// Devices: versions, attributes, properties, limits.
#include <cstring>

#include "tools/simgpu/runtime/calls.hpp"

namespace simgpu::runtime {
namespace {

// Reads attributes of one device and remembers the first failure.
class Attributes {
 public:
  explicit Attributes(int device) : device_(device) {}

  int operator[](CUdevice_attribute attribute) {
    int value = 0;
    const CUresult result = driver_call<row::cudaDeviceGetAttribute>(&value, attribute, device_);
    if (failed_ == CUDA_SUCCESS) failed_ = result;
    return value;
  }
  CUresult failed() const { return failed_; }

 private:
  int device_;
  CUresult failed_ = CUDA_SUCCESS;
};

void fill_limits(cudaDeviceProp& p, Attributes& get) {
  p.sharedMemPerBlock = static_cast<std::size_t>(get[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK]);
  p.regsPerBlock = get[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK];
  p.warpSize = get[CU_DEVICE_ATTRIBUTE_WARP_SIZE];
  p.memPitch = static_cast<std::size_t>(get[CU_DEVICE_ATTRIBUTE_MAX_PITCH]);
  p.maxThreadsPerBlock = get[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
  p.maxThreadsDim[0] = get[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X];
  p.maxThreadsDim[1] = get[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y];
  p.maxThreadsDim[2] = get[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z];
  p.maxGridSize[0] = get[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X];
  p.maxGridSize[1] = get[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y];
  p.maxGridSize[2] = get[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z];
  p.totalConstMem = static_cast<std::size_t>(get[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY]);
  p.textureAlignment = static_cast<std::size_t>(get[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT]);
  p.texturePitchAlignment = static_cast<std::size_t>(get[CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT]);
  p.surfaceAlignment = static_cast<std::size_t>(get[CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT]);
  p.maxThreadsPerMultiProcessor = get[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR];
  p.maxBlocksPerMultiProcessor = get[CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR];
  p.sharedMemPerMultiprocessor = static_cast<std::size_t>(get[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR]);
  p.sharedMemPerBlockOptin = static_cast<std::size_t>(get[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN]);
  p.reservedSharedMemPerBlock = static_cast<std::size_t>(get[CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK]);
  p.regsPerMultiprocessor = get[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR];
  p.l2CacheSize = get[CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE];
  p.persistingL2CacheMaxSize = get[CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE];
  p.accessPolicyMaxWindowSize = get[CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE];
  p.memoryBusWidth = get[CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH];
}

void fill_abilities(cudaDeviceProp& p, Attributes& get) {
  p.major = get[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
  p.minor = get[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
  p.multiProcessorCount = get[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
  p.integrated = get[CU_DEVICE_ATTRIBUTE_INTEGRATED];
  p.canMapHostMemory = get[CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY];
  p.concurrentKernels = get[CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS];
  p.ECCEnabled = get[CU_DEVICE_ATTRIBUTE_ECC_ENABLED];
  p.pciBusID = get[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID];
  p.pciDeviceID = get[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID];
  p.pciDomainID = get[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID];
  p.tccDriver = get[CU_DEVICE_ATTRIBUTE_TCC_DRIVER];
  p.asyncEngineCount = get[CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT];
  p.unifiedAddressing = get[CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING];
  p.streamPrioritiesSupported = get[CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED];
  p.globalL1CacheSupported = get[CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED];
  p.localL1CacheSupported = get[CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED];
  p.managedMemory = get[CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY];
  p.isMultiGpuBoard = get[CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD];
  p.multiGpuBoardGroupID = get[CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID];
  p.hostNativeAtomicSupported = get[CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED];
  p.pageableMemoryAccess = get[CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS];
  p.concurrentManagedAccess = get[CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS];
  p.computePreemptionSupported = get[CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED];
  p.canUseHostPointerForRegisteredMem = get[CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM];
  p.cooperativeLaunch = get[CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH];
  p.hostRegisterSupported = get[CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED];
  p.memoryPoolsSupported = get[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED];
  p.memoryPoolSupportedHandleTypes = static_cast<unsigned>(get[CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES]);
  p.gpuDirectRDMASupported = get[CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED];
  p.gpuDirectRDMAFlushWritesOptions = static_cast<unsigned>(get[CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS]);
  p.gpuDirectRDMAWritesOrdering = get[CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING];
  p.ipcEventSupported = get[CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED];
  p.clusterLaunch = get[CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH];
  p.unifiedFunctionPointers = get[CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS];
}

}  // namespace

SIMGPU_API cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return finish(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return finish(cudaErrorInvalidValue);
  *version = driver_version();
  return cudaSuccess;
}

// Texture and surface limits stay 0: the stand-in has no textures.
SIMGPU_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return finish(cudaErrorInvalidValue);
  if (const cudaError_t error = driver_ready()) return finish(error);
  cudaDeviceProp p{};
  if (const CUresult result = driver_call<row::cudaGetDeviceProperties_name>(p.name, static_cast<int>(sizeof(p.name)), device))
    return finish(result);
  if (const CUresult result = driver_call<row::cudaGetDeviceProperties_memory>(&p.totalGlobalMem, device))
    return finish(result);
  if (const CUresult result = driver_call<row::cudaGetDeviceProperties_uuid>(&p.uuid, device)) return finish(result);
  Attributes get(device);
  fill_limits(p, get);
  fill_abilities(p, get);
  if (get.failed() != CUDA_SUCCESS) return finish(get.failed());
  *properties = p;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return direct_without_context<row::cudaDeviceGetAttribute>(value, as<CUdevice_attribute>(attribute), device);
}

SIMGPU_API cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return direct_without_context<row::cudaDeviceGetPCIBusId>(id, length, device);
}

SIMGPU_API cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return direct_without_context<row::cudaDeviceGetByPCIBusId>(device, id);
}

SIMGPU_API cudaError_t cudaDeviceSynchronize() { return direct<row::cudaDeviceSynchronize>(); }

SIMGPU_API cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return direct<row::cudaDeviceSetLimit>(as<CUlimit>(limit), value);
}

SIMGPU_API cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return direct<row::cudaDeviceGetLimit>(value, as<CUlimit>(limit));
}

SIMGPU_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return direct<row::cudaDeviceGetStreamPriorityRange>(least, greatest);
}

SIMGPU_API cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return direct<row::cudaDeviceGetCacheConfig>(as<CUfunc_cache*>(config));
}

SIMGPU_API cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return direct<row::cudaDeviceSetCacheConfig>(as<CUfunc_cache>(config));
}

SIMGPU_API cudaError_t cudaCtxResetPersistingL2Cache() { return direct<row::cudaCtxResetPersistingL2Cache>(); }

SIMGPU_API cudaError_t cudaGetDeviceFlags(unsigned int* flags) { return direct<row::cudaGetDeviceFlags>(flags); }

SIMGPU_API cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  if (const cudaError_t error = driver_ready()) return finish(error);
  int device = 0;
  if (const cudaError_t error = current_device(device)) return finish(error);
  return finish(driver_call<row::cudaSetDeviceFlags>(device, flags));
}

SIMGPU_API cudaError_t cudaProfilerStart() { return direct<row::cudaProfilerStart>(); }
SIMGPU_API cudaError_t cudaProfilerStop() { return direct<row::cudaProfilerStop>(); }

}  // namespace simgpu::runtime
