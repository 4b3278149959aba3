// The variables that device code finds without a header.
//
// They live in libsimgpu_twins.so, alone, because of their TLS model. initial-exec: reading threadIdx costs one instruction
// instead of a call. The loader keeps little room for such variables, and it would have to hold all thread-local variables of
// the object that defines them: with kernels' shared memory in it, that object could not be loaded.
#pragma once

// A kernel header may include <cuda_runtime.h>; its declarations of threadIdx and the others would clash with ours.
#define __DEVICE_LAUNCH_PARAMETERS_H__

#include <vector_functions.h>
#include <vector_types.h>

#define SIMGPU_BUILT_IN extern constinit thread_local __attribute__((tls_model("initial-exec"), visibility("default")))
SIMGPU_BUILT_IN uint3 threadIdx;
SIMGPU_BUILT_IN uint3 blockIdx;
SIMGPU_BUILT_IN dim3 blockDim;
SIMGPU_BUILT_IN dim3 gridDim;
#undef SIMGPU_BUILT_IN
inline constexpr int warpSize = 32;
