// Kernels and variables whose cubins simgpu_image_test.cpp reads.
#include <cstddef>

__constant__ float all_zero[4];
__constant__ int primes[3] = {2, 3, 5};
__device__ int counter;
__device__ short started[5] = {0, 0, 7, 0, 0};

struct Block48 {
  double values[5];
  char last;
};

template <class T>
__global__ void mixed(T* out, Block48 block, T value, std::size_t n) {
  __shared__ int scratch[40];
  scratch[threadIdx.x % 40] = static_cast<int>(threadIdx.x);
  __syncthreads();
  const std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = value + static_cast<T>(block.values[4]) + scratch[3] + primes[1] + started[2];
}
template __global__ void mixed<int>(int*, Block48, int, std::size_t);

__device__ __noinline__ int helper(int a) { return a * counter + static_cast<int>(all_zero[2]); }

__global__ void no_parameters() { counter = helper(counter); }

__global__ void small_ones(char a, short b, double c, char d, int* out) { *out = a + b + static_cast<int>(c) + d; }
