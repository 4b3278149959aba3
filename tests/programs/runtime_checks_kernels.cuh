// Kernels of runtime_checks. Compiled by nvcc for GPUs and by g++ for the simulated one.
#pragma once

#include <cstddef>

struct Recipe {  // 48 bytes, the last 7 of them padding
  double parts[5];
  char salt;
};

template <class T>
__global__ void fill(T* out, Recipe recipe, T value, std::size_t n) {
  const std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = value + static_cast<T>(recipe.parts[4]) + static_cast<T>(recipe.salt);
}

__global__ void add_to_each(int* values, int amount, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) values[i] += amount;
}

__global__ void count_threads(unsigned long long* counter, unsigned weight) { atomicAdd(counter, weight); }

// Which block and thread wrote each cell: tells whether the geometry of a launch arrives.
__global__ void coordinates(unsigned* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = block * 1000 + thread;
}

// A block's sum as a tree, in a fixed order, and how many of its values are negative. `partial` is dynamic shared memory: one
// float per thread, a power of two of them.
__global__ void block_sums(const float* in, float* sums, unsigned* negatives) {
  extern __shared__ float partial[];
  __shared__ unsigned negative;
  const unsigned i = threadIdx.x;
  if (i == 0) negative = 0;
  const float value = in[blockIdx.x * blockDim.x + i];
  partial[i] = value;
  __syncthreads();
  if (value < 0) atomicAdd(&negative, 1U);
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (i < half) partial[i] += partial[i + half];
    __syncthreads();
  }
  if (i == 0) {
    sums[blockIdx.x] = partial[0];
    negatives[blockIdx.x] = negative;
  }
}
