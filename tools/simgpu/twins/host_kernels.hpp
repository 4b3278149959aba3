// Makes the source of CUDA kernels compile with g++, so that the simulated GPU can run them on the host.
//
//   #include "tools/simgpu/twins/host_kernels.hpp"
//   #include "tests/programs/saxpy_kernels.cuh"           // the same text that nvcc compiles
//   SIM_DYNAMIC_SHARED(float, partial_sums)               // for a kernel's  extern __shared__ float partial_sums[];
//   SIM_TWIN(_Z5saxpyifPKfPf, saxpy)                      // name as in the cubin, then the function
//   SIM_TWIN(_Z4fillIiEvPT_3BigS0_m, fill<int>)
//
// Link with simgpu_twins (libsimgpu_twins.so), compile by g++ with -fno-extern-tls-init (the target brings it): g++ 12 would
// call a function that does not exist to initialise a template's dynamic shared memory.
//
// A launch is a plain loop over its threads, until one of them reaches a barrier: see fibers.hpp. __shared__ variables are
// thread-local ones: the blocks of a launch run one after another on one OS thread and find in them what the last one left.
// Several launches may run at once on different workers; the atomics are atomics. A thread that waits for another one without
// a barrier (spins) waits for ever. Warp intrinsics are refused when the twin is compiled. `__device__` and `__constant__`
// variables of a twin are its own, not those that the program sets through the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tools/simgpu/twins/built_ins.hpp"
#include "tools/simgpu/twins/fibers.hpp"
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
#define __shared__ thread_local
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __grid_constant__
#define __restrict__ __restrict

#include "tools/simgpu/twins/device_functions.hpp"

namespace simgpu::twins {

inline constexpr std::size_t kMostDynamicShared = 227 << 10;  // what a block of the largest card can have

// The loop over threads, from a position on: to the end of the launch, or to the end of the block on a fiber.
//
// The kernel is a template argument, not a value, so that the compiler puts its body into the loop over threads and keeps the
// arguments in registers. Needs -fvisibility=hidden: a function that another object could replace is not inlined.
template <auto function, class... Arguments>
__attribute__((flatten)) void for_each_thread(const SimLaunch& launch, Where where, const Position& from,
                                              Arguments... arguments) {
  const SimDim3 grid = launch.grid;
  const SimDim3 block = launch.block;
  uint3 first = from.thread;
  resumed = false;
  unsigned bx = from.block.x, by = from.block.y;
  for (unsigned bz = from.block.z; bz < grid.z; ++bz, by = 0)
    for (; by < grid.y; ++by, bx = 0)
      for (; bx < grid.x; ++bx) {
        blockIdx = {bx, by, bz};
        for (unsigned tz = first.z; tz < block.z; ++tz, first.y = 0)
          for (unsigned ty = first.y; ty < block.y; ++ty, first.x = 0) {
            threadIdx = {first.x, ty, tz};
            for (unsigned tx = first.x; tx < block.x; ++tx) {
              threadIdx.x = tx;
              function(arguments...);
              if (resumed) [[unlikely]]
                goto ended;
            }
          }
      ended:
        if (where == Where::fiber) return;
        if (resumed) {
          finish_block();
          resumed = false;
        }
        first = {0, 0, 0};
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
    if (launch.dynamic_shared > kMostDynamicShared) {
      std::fprintf(stderr, "simgpu: launch of %s asks for %u bytes of dynamic shared memory; twins have %zu\n", name,
                   launch.dynamic_shared, kMostDynamicShared);
      std::abort();
    }
    gridDim = dim3(launch.grid.x, launch.grid.y, launch.grid.z);
    blockDim = dim3(launch.block.x, launch.block.y, launch.block.z);
    begin_launch({&launch, &enter});
    enter(launch, Where::launch, {});
  }

 private:
  static void enter(const SimLaunch& launch, Where where, const Position& from) {
    call(launch, where, from, std::index_sequence_for<Parameters...>{});
  }

  template <std::size_t... i>
  static void call(const SimLaunch& launch, Where where, const Position& from, std::index_sequence<i...>) {
    for_each_thread<function>(launch, where, from, read_parameter<std::remove_cv_t<Parameters>>(launch.parameters[i])...);
  }
};

}  // namespace simgpu::twins

// SIM_TWIN(mangled name of the kernel, the kernel). The function may be a template instance with commas.
#define SIM_TWIN(mangled, ...)                                                                     \
  extern "C" __attribute__((visibility("default"))) void simk_##mangled(const SimLaunch* launch);  \
  extern "C" __attribute__((visibility("default"))) void simk_##mangled(const SimLaunch* launch) { \
    ::simgpu::twins::Twin<&__VA_ARGS__>::run(*launch, #mangled);                                   \
  }

// SIM_DYNAMIC_SHARED(type, name): the memory behind a kernel's  extern __shared__ type name[];
#define SIM_DYNAMIC_SHARED(type, name) alignas(128) thread_local type name[::simgpu::twins::kMostDynamicShared / sizeof(type)];
