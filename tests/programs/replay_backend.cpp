#include "tests/programs/replay_backend.hpp"

#include <cuda.h>

#include "tests/programs/cuda_check.hpp"

namespace {

class RuntimeBackend : public Backend {
 public:
  void* allocate(std::uint64_t size, cudaStream_t) override {
    void* data = nullptr;
    const cudaError_t error = cudaMalloc(&data, size);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // the runtime remembers it; we have taken note
      return nullptr;
    }
    require(error, "cudaMalloc", __FILE__, __LINE__);
    return data;
  }

  void release(void* data, std::uint64_t, cudaStream_t) override { REQUIRE_CUDA(cudaFree(data)); }
};

class AsyncBackend : public Backend {
 public:
  void* allocate(std::uint64_t size, cudaStream_t stream) override {
    void* data = nullptr;
    const cudaError_t error = cudaMallocAsync(&data, size, stream);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    require(error, "cudaMallocAsync", __FILE__, __LINE__);
    return data;
  }

  void release(void* data, std::uint64_t, cudaStream_t stream) override { REQUIRE_CUDA(cudaFreeAsync(data, stream)); }
};

// The program is not linked to the driver; it asks the runtime for entry points, as libraries do.
template <class Function>
Function entry_point(const char* name) {
  constexpr unsigned kVersion = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status{};
#if CUDART_VERSION >= 12050
  REQUIRE_CUDA(cudaGetDriverEntryPointByVersion(name, &function, kVersion, cudaEnableDefault, &status));
#else
  (void)kVersion;
  REQUIRE_CUDA(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &status));
#endif
  if (status != cudaDriverEntryPointSuccess || !function) {
    std::fprintf(stderr, "cuda error: the driver has no %s\n", name);
    std::exit(kExitCudaError);
  }
  return reinterpret_cast<Function>(function);
}

#define ENTRY_POINT(function) entry_point<decltype(&function)>(#function)

void require_driver(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  ENTRY_POINT(cuGetErrorName)(result, &name);
  std::fprintf(stderr, "cuda error: %s (%d): in %s\n", name ? name : "unknown error", static_cast<int>(result), call);
  std::exit(kExitCudaError);
}

CUdeviceptr device_pointer(void* data) { return reinterpret_cast<CUdeviceptr>(data); }
void* host_form(CUdeviceptr pointer) { return reinterpret_cast<void*>(pointer); }

class DriverBackend : public Backend {
 public:
  void* allocate(std::uint64_t size, cudaStream_t) override {
    CUdeviceptr pointer = 0;
    const CUresult result = allocate_(&pointer, size);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
    require_driver(result, "cuMemAlloc");
    return host_form(pointer);
  }

  void release(void* data, std::uint64_t, cudaStream_t) override { require_driver(free_(device_pointer(data)), "cuMemFree"); }

 private:
  decltype(&cuMemAlloc) allocate_ = entry_point<decltype(&cuMemAlloc)>("cuMemAlloc");
  decltype(&cuMemFree) free_ = entry_point<decltype(&cuMemFree)>("cuMemFree");
};

class VmmBackend : public Backend {
 public:
  VmmBackend() {
    int device = 0;
    REQUIRE_CUDA(cudaGetDevice(&device));
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    access_.location = properties_.location;
    access_.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    require_driver(ENTRY_POINT(cuMemGetAllocationGranularity)(&granularity_, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                   "cuMemGetAllocationGranularity");
  }

  void* allocate(std::uint64_t size, cudaStream_t) override {
    const std::size_t mapped = mapped_size(size);
    CUmemGenericAllocationHandle handle = 0;
    const CUresult created = create_(&handle, mapped, &properties_, 0);
    if (created == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
    require_driver(created, "cuMemCreate");
    CUdeviceptr pointer = 0;
    require_driver(reserve_(&pointer, mapped, 0, 0, 0), "cuMemAddressReserve");
    require_driver(map_(pointer, mapped, 0, handle, 0), "cuMemMap");
    require_driver(release_(handle), "cuMemRelease");  // the mapping keeps the memory
    require_driver(set_access_(pointer, mapped, &access_, 1), "cuMemSetAccess");
    return host_form(pointer);
  }

  void release(void* data, std::uint64_t size, cudaStream_t) override {
    require_driver(unmap_(device_pointer(data), mapped_size(size)), "cuMemUnmap");
    require_driver(free_address_(device_pointer(data), mapped_size(size)), "cuMemAddressFree");
  }

  bool release_needs_idle() const override { return true; }

 private:
  std::size_t mapped_size(std::uint64_t size) const { return (size + granularity_ - 1) / granularity_ * granularity_; }

  CUmemAllocationProp properties_{};
  CUmemAccessDesc access_{};
  std::size_t granularity_ = 0;
  decltype(&cuMemCreate) create_ = ENTRY_POINT(cuMemCreate);
  decltype(&cuMemRelease) release_ = ENTRY_POINT(cuMemRelease);
  decltype(&cuMemAddressReserve) reserve_ = ENTRY_POINT(cuMemAddressReserve);
  decltype(&cuMemAddressFree) free_address_ = ENTRY_POINT(cuMemAddressFree);
  decltype(&cuMemMap) map_ = ENTRY_POINT(cuMemMap);
  decltype(&cuMemUnmap) unmap_ = ENTRY_POINT(cuMemUnmap);
  decltype(&cuMemSetAccess) set_access_ = ENTRY_POINT(cuMemSetAccess);
};

}  // namespace

std::unique_ptr<Backend> make_backend(const std::string& api) {
  REQUIRE_CUDA(cudaSetDevice(0));
  REQUIRE_CUDA(cudaFree(nullptr));  // the driver's calls need the context that the runtime makes at its first use
  if (api == "malloc") return std::make_unique<RuntimeBackend>();
  if (api == "async") return std::make_unique<AsyncBackend>();
  if (api == "driver") return std::make_unique<DriverBackend>();
  return std::make_unique<VmmBackend>();
}
