// Preparations that cases share. Each ends the case if the driver refuses.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

// The form that every driver exports, whatever the header's newest one is.
#undef cuEventElapsedTime
#undef cuCtxCreate
#undef cuStreamGetCaptureInfo
extern "C" CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);
extern "C" CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
extern "C" CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                              const CUgraphNode** dependencies, size_t* count);

namespace vramd::conformance {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

// --- devices ---
extern int chosen_device;  // --device
void start();              // cuInit
CUcontext primary();       // start(), and the chosen device's primary context is current
int second_device();       // another one; not_available where there is none
int device_attribute(CUdevice_attribute attribute);

// --- memory: the four kinds that copies know ---
enum class Kind { device, host_backed, pinned, pageable };
CUdeviceptr device_memory(std::size_t size);
char* pinned_memory(std::size_t size);
char* pageable_memory(std::size_t size);
CUdeviceptr memory_of(Kind kind, std::size_t size);

// --- virtual memory management ---
CUmemAllocationProp device_prop(int handle_types = 0);
CUmemAllocationProp host_prop(int handle_types = 0);  // HOST_NUMA, the node closest to the device, 0 where the driver says -1
std::size_t granularity(const CUmemAllocationProp& prop);
CUmemGenericAllocationHandle chunk(std::size_t size, const CUmemAllocationProp& prop);
CUmemGenericAllocationHandle host_chunk(std::size_t size, int handle_types = 0);  // not_available where the driver has none
CUdeviceptr reserve(std::size_t size);
CUmemAccessDesc device_access(CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
CUmemAccessDesc host_access();
// Mapped at a new place; device access, for a host chunk also the host's.
struct Mapping {
  CUdeviceptr address = 0;
  std::size_t size = 0;
  CUmemGenericAllocationHandle handle = 0;
};
Mapping map_new(std::size_t chunks = 1);         // so many device chunks of a granule, side by side; handle is the first's
Mapping map_new_host(std::size_t granules = 1);  // one chunk in host memory
// The primary context, a granule of device memory, room for four, and one chunk of so many.
struct Parts {
  std::size_t granule;
  CUdeviceptr room;
  CUmemGenericAllocationHandle handle;
};
Parts parts(std::size_t granules = 1);
void map(CUdeviceptr address, std::size_t size, CUmemGenericAllocationHandle handle);
void map_host(CUdeviceptr address, std::size_t size, CUmemGenericAllocationHandle handle);

// --- bytes and streams ---
void fill(CUdeviceptr address, unsigned char value, std::size_t size);   // done on return
bool holds(CUdeviceptr address, unsigned char value, std::size_t size);  // reads through the driver
bool all_bytes(const void* bytes, unsigned char value, std::size_t size);
CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING);
CUevent event(unsigned flags = CU_EVENT_DISABLE_TIMING);
std::size_t free_bytes();

inline CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
inline void* pointer_to(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace vramd::conformance
