// Kernels of the GPU run. Compiled by nvcc into an image that is loaded by hand, and by g++ for the simulated GPU.
#pragma once

extern "C" {

__device__ int gpu_run_number = 7;

__global__ void gpu_run_nothing() {}

// Neighbouring threads read neighbouring words; the sum keeps the compiler from dropping the reads.
__global__ void gpu_run_read(const unsigned* words, unsigned long long count, unsigned* sum) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  unsigned found = 0;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    found += words[i];
  if (found == 0xffffffffU) *sum = found;
}

__global__ void gpu_run_write(unsigned* words, unsigned long long count, unsigned value) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    words[i] = value;
}

// The same number of words, scattered: an odd multiplier visits each of a power of two once.
__global__ void gpu_run_read_scattered(const unsigned* words, unsigned long long count, unsigned* sum) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  unsigned found = 0;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    found += words[(i * 0x9e3779b1ULL) & (count - 1)];
  if (found == 0xffffffffU) *sum = found;
}

__global__ void gpu_run_write_scattered(unsigned* words, unsigned long long count, unsigned value) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    words[(i * 0x9e3779b1ULL) & (count - 1)] = value;
}

}  // extern "C"
