// The driver as the runtime sees it: what cuGetProcAddress answered to the look-ups of lookups.txt.
#pragma once

#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>

namespace simgpu::runtime {

// A row of a map names a driver entry by its places in the look-up list.
struct Slots {
  int legacy;      // flags 0: stream 0 is the legacy default stream
  int per_thread;  // flags 2: stream 0 is the thread's own default stream; -1 where there is no such form
};

// Which of the two a runtime function uses: cudaXxx or cudaXxx_ptsz / cudaXxx_ptds.
enum class Form { legacy, per_thread };

// Loads the driver at the first call of the process, in the order of lookups.txt. CUDA_ERROR_NOT_FOUND when
// there is no libcuda.so.1 or it is no CUDA driver; otherwise what cuInit answered. Thread-safe.
CUresult load_driver();

// What cuDriverGetVersion says; 0 without a driver. Loads the driver.
int driver_version();

// The answer to look-up number `slot`, null where the driver has no such entry. After load_driver().
void* looked_up(int slot);

// cuGetProcAddress itself, as found by look-up: hooks that replace it see what asks through it.
PFN_cuGetProcAddress_v12000 proc_address();

// True when SIM_RUNTIME_MAP=permuted.
bool map_is_permuted();

}  // namespace simgpu::runtime
