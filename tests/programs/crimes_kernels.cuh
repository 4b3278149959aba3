// Compiled by nvcc for GPUs and by g++ for the simulated one.
#pragma once

__global__ void poke(unsigned* target, unsigned value) { *target = value; }

__global__ void peek(const unsigned* source, unsigned* out) { *out = *source; }

__global__ void peek_and_poke(unsigned* memory, unsigned* out) {
  *out = *memory;
  *memory = 2;
}

// Uses the memory until it is told to stop; the word is host memory.
__global__ void keep_poking(unsigned* target, const volatile unsigned* stop) {
  while (*stop == 0) *target += 1;
}

// The last thread of the block goes astray after the others have met it.
__global__ void poke_after_barrier(unsigned* target) {
  __shared__ unsigned met;
  if (threadIdx.x == 0) met = 0;
  __syncthreads();
  atomicAdd(&met, 1u);
  __syncthreads();
  if (threadIdx.x == blockDim.x - 1) *target = met;
}
