// Functions that device code finds without a header: barriers, atomics, and refusals of what has no twin.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <type_traits>

#include "tools/simgpu/twins/fibers.hpp"

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

// ---- Barriers

inline void __syncthreads() { simgpu::twins::wait_for_block(false); }
inline int __syncthreads_count(int predicate) { return simgpu::twins::wait_for_block(predicate != 0).count; }
inline int __syncthreads_and(int predicate) { return simgpu::twins::wait_for_block(predicate != 0).all ? 1 : 0; }
inline int __syncthreads_or(int predicate) { return simgpu::twins::wait_for_block(predicate != 0).count != 0 ? 1 : 0; }

// ---- Warps: the threads of a block run one after another, whatever warp they are in

#define SIMGPU_REFUSED(what) \
  __attribute__((error(what " has no twin: a simulated block has no warps. Write the test's kernel with __syncthreads")))
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
