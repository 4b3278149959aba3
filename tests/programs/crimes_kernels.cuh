// Compiled by nvcc for GPUs and by g++ for the simulated one.
#pragma once

__global__ void poke(unsigned* target, unsigned value) { *target = value; }

__global__ void peek(const unsigned* source, unsigned* out) { *out = *source; }

// Uses the memory until it is told to stop; the word is host memory.
__global__ void keep_poking(unsigned* target, const volatile unsigned* stop) {
  while (*stop == 0) *target += 1;
}
