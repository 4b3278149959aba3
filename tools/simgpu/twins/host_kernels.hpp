// Makes the source of simple CUDA kernels compile with g++, so that the simulated GPU can run them on the
// host.
//
//   #include "tools/simgpu/twins/host_kernels.hpp"
//   #include "tests/programs/saxpy_kernels.cuh"           // the same text that nvcc compiles
//   SIM_TWIN(_Z5saxpyifPKfPf, saxpy)                      // name as in the cubin, then the function
//   SIM_TWIN(_Z4fillIiEvPT_3BigS0_m, fill<int>)
//
// A launch is a plain loop over its threads, so kernels in which threads wait for each other cannot be
// expressed:
// __syncthreads, __shared__ memory and warp intrinsics are refused when the twin is compiled. Several
// launches may run at once on different workers: the built-in variables are thread-local and the atomics are
// atomics. `__device__` and
// `__constant__` variables of a twin are its own, not those that the program sets through the runtime.
#pragma once

// A kernel header may include <cuda_runtime.h>; its declarations of threadIdx and the others would clash with
// ours.
#define __DEVICE_LAUNCH_PARAMETERS_H__

#include <vector_functions.h>
#include <vector_types.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tools/simgpu/twins/launch.h"

#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __shared__
#undef __launch_bounds__
#undef __forceinline__
#undef __grid_constant__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __grid_constant__
#define __restrict__ __restrict
#define __shared__ _Pragma("GCC error \"__shared__ memory has no meaning in a twin: its threads run one after another\"")

// initial-exec: a twin is loaded at the first launch, and these few bytes fit into the room that the loader
// keeps for it; reading threadIdx then costs one instruction instead of a call.
#define SIMGPU_BUILT_IN inline constinit thread_local __attribute__((tls_model("initial-exec")))
SIMGPU_BUILT_IN uint3 threadIdx{0, 0, 0};
SIMGPU_BUILT_IN uint3 blockIdx{0, 0, 0};
SIMGPU_BUILT_IN dim3 blockDim{1, 1, 1};
SIMGPU_BUILT_IN dim3 gridDim{1, 1, 1};
#undef SIMGPU_BUILT_IN
inline constexpr int warpSize = 32;

// ---- What device code finds without a header
// -------------------------------------------------------------------------

using std::max;
using std::min;
inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
template <class T>
T __ldg(const T* address) {
  return *address;
}
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_block() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// CUDA's atomics order nothing but themselves: relaxed. All return the old value.
template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_add(value, std::memory_order_relaxed);
}
template <class T>
T atomicSub(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_sub(value, std::memory_order_relaxed);
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
  std::atomic_ref<T>(*address).compare_exchange_strong(expected, desired, std::memory_order_relaxed);
  return expected;
}
template <class T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_and(value, std::memory_order_relaxed);
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_or(value, std::memory_order_relaxed);
}
template <class T>
T atomicXor(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_xor(value, std::memory_order_relaxed);
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  std::atomic_ref<T> cell(*address);
  T old = cell.load(std::memory_order_relaxed);
  while (old < value && !cell.compare_exchange_weak(old, value, std::memory_order_relaxed)) {
  }
  return old;
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  std::atomic_ref<T> cell(*address);
  T old = cell.load(std::memory_order_relaxed);
  while (value < old && !cell.compare_exchange_weak(old, value, std::memory_order_relaxed)) {
  }
  return old;
}

// ---- What a plain loop over threads cannot do
// ------------------------------------------------------------------------

#define SIMGPU_REFUSED(what)                                                                                           \
  __attribute__((error(what " has no twin: the threads of a simulated launch run one after another. Write the test's " \
                            "kernel without it")))
SIMGPU_REFUSED("__syncthreads") void __syncthreads();
SIMGPU_REFUSED("__syncthreads_count") int __syncthreads_count(int);
SIMGPU_REFUSED("__syncthreads_and") int __syncthreads_and(int);
SIMGPU_REFUSED("__syncthreads_or") int __syncthreads_or(int);
SIMGPU_REFUSED("__syncwarp") void __syncwarp(unsigned mask = 0xffffffffU);
SIMGPU_REFUSED("__activemask") unsigned __activemask();
SIMGPU_REFUSED("__ballot_sync") unsigned __ballot_sync(unsigned, int);
SIMGPU_REFUSED("__all_sync") int __all_sync(unsigned, int);
SIMGPU_REFUSED("__any_sync") int __any_sync(unsigned, int);
template <class T>
SIMGPU_REFUSED("__shfl_sync")
T __shfl_sync(unsigned, T, int, int = warpSize);
template <class T>
SIMGPU_REFUSED("__shfl_up_sync")
T __shfl_up_sync(unsigned, T, unsigned, int = warpSize);
template <class T>
SIMGPU_REFUSED("__shfl_down_sync")
T __shfl_down_sync(unsigned, T, unsigned, int = warpSize);
template <class T>
SIMGPU_REFUSED("__shfl_xor_sync")
T __shfl_xor_sync(unsigned, T, int, int = warpSize);
#undef SIMGPU_REFUSED

// ---- From a launch to calls of the kernel
// ----------------------------------------------------------------------------

namespace simgpu::twins {

// The kernel is a template argument, not a value, so that the compiler puts its body into the loop over
// threads and keeps the arguments in registers. Needs -fvisibility=hidden: a function that another object
// could replace is not inlined.
template <auto function, class... Arguments>
__attribute__((flatten)) void for_each_thread(const SimLaunch& launch, Arguments... arguments) {
  const SimDim3 grid = launch.grid;
  const SimDim3 block = launch.block;
  gridDim = dim3(grid.x, grid.y, grid.z);
  blockDim = dim3(block.x, block.y, block.z);
  for (unsigned bz = 0; bz < grid.z; ++bz)
    for (unsigned by = 0; by < grid.y; ++by)
      for (unsigned bx = 0; bx < grid.x; ++bx) {
        blockIdx = {bx, by, bz};
        for (unsigned tz = 0; tz < block.z; ++tz)
          for (unsigned ty = 0; ty < block.y; ++ty) {
            threadIdx = {0, ty, tz};
            for (unsigned tx = 0; tx < block.x; ++tx) {
              threadIdx.x = tx;
              function(arguments...);
            }
          }
      }
}

// The launch's copy of a parameter need not be aligned for its type.
template <class T>
T read_parameter(const void* address) {
  static_assert(std::is_trivially_copyable_v<T>, "a kernel's parameters are copied byte by byte");
  alignas(T) std::byte bytes[sizeof(T)];
  std::memcpy(bytes, address, sizeof(T));
  return *reinterpret_cast<T*>(bytes);
}

template <auto function, class Signature = decltype(function)>
struct Twin;

template <auto function, class... Parameters>
struct Twin<function, void (*)(Parameters...)> {
  static void run(const SimLaunch& launch, const char* name) {
    if (launch.parameter_count != sizeof...(Parameters)) {
      // Going on would read parameters that do not exist.
      std::fprintf(stderr, "simgpu: twin of %s takes %zu parameters, the launch has %u: SIM_TWIN names another kernel\n", name,
                   sizeof...(Parameters), launch.parameter_count);
      std::abort();
    }
    run(launch, std::index_sequence_for<Parameters...>{});
  }

 private:
  template <std::size_t... i>
  static void run(const SimLaunch& launch, std::index_sequence<i...>) {
    for_each_thread<function>(launch, read_parameter<std::remove_cv_t<Parameters>>(launch.parameters[i])...);
  }
};

}  // namespace simgpu::twins

// SIM_TWIN(mangled name of the kernel, the kernel). The function may be a template instance with commas.
#define SIM_TWIN(mangled, ...)                                                                     \
  extern "C" __attribute__((visibility("default"))) void simk_##mangled(const SimLaunch* launch);  \
  extern "C" __attribute__((visibility("default"))) void simk_##mangled(const SimLaunch* launch) { \
    ::simgpu::twins::Twin<&__VA_ARGS__>::run(*launch, #mangled);                                   \
  }
