// Kernels whose threads wait for each other. Each gives a wrong result where a barrier lets a thread through too early.
#pragma once

// Sum of a block's values in shared memory, halving: a thread reads what others wrote before the barrier.
__global__ void tree_sum(const int* in, int* out) {
  __shared__ int cells[1024];
  const unsigned i = threadIdx.x, n = blockDim.x;
  cells[i] = in[blockIdx.x * n + i];
  __syncthreads();
  for (unsigned half = n / 2; half > 0; half /= 2) {
    if (i < half) cells[i] += cells[i + half];
    __syncthreads();
  }
  if (i == 0) out[blockIdx.x] = cells[0];
}

// Threads at and past `stay` end before the barriers; the others pass what they hold to the next one, `rounds` times.
__global__ void pass_on(unsigned* out, unsigned stay, unsigned rounds) {
  __shared__ unsigned cells[1024];
  const unsigned i = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  if (i >= stay) return;
  unsigned mine = i;
  float real = static_cast<float>(i) + 0.5F;
  for (unsigned round = 0; round < rounds; ++round) {
    cells[i] = mine;
    __syncthreads();
    mine = cells[(i + 1) % stay];
    real += 1.0F;
    __syncthreads();
  }
  const unsigned again = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[again] = real == static_cast<float>(i + rounds) + 0.5F ? mine : ~0U;
}

// threadIdx and blockIdx after each barrier, which all threads of the block passed.
__global__ void who_am_i(int* wrong) {
  const uint3 thread = threadIdx, block = blockIdx;
  for (int round = 0; round < 3; ++round) {
    const int passed = __syncthreads_count(1);
    if (passed != static_cast<int>(blockDim.x * blockDim.y * blockDim.z) || threadIdx.x != thread.x ||
        threadIdx.y != thread.y || threadIdx.z != thread.z || blockIdx.x != block.x || blockIdx.y != block.y ||
        blockIdx.z != block.z)
      atomicAdd(wrong, 1);
  }
}

// Copies backwards through dynamic shared memory.
template <class T>
__global__ void backwards(T* values) {
  extern __shared__ T mirror[];
  const unsigned i = threadIdx.x;
  mirror[i] = values[blockIdx.x * blockDim.x + i];
  __syncthreads();
  values[blockIdx.x * blockDim.x + i] = mirror[blockDim.x - 1 - i];
}

// Shared atomics: everybody reads the full count. Thread 0 clears the counter that the last block left behind.
__global__ void count_all(unsigned* out) {
  __shared__ unsigned counter;
  if (threadIdx.x == 0) counter = 0;
  __syncthreads();
  atomicAdd(&counter, 1U);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = counter;
}

// Threads at and past `stay` have ended and have no vote.
__global__ void votes(int* out, unsigned stay, unsigned yes) {
  const unsigned i = threadIdx.x;
  if (i >= stay) return;
  const int predicate = i < yes ? 4 : 0;
  out[3 * i] = __syncthreads_count(predicate);
  out[3 * i + 1] = __syncthreads_and(predicate);
  out[3 * i + 2] = __syncthreads_or(predicate);
}

// The first thread passes most barriers, the last none: those that have ended count as arrived, and all barriers are one.
// Undefined on a card.
__global__ void uneven(unsigned* order, unsigned* place) {
  for (unsigned round = 0; round < blockDim.x - 1 - threadIdx.x; ++round) __syncthreads();
  order[threadIdx.x] = atomicAdd(place, 1U);
}

// What a thread keeps in registers is its own. `out` holds a block's threads and one cell more.
__global__ void registers(const double* in, double* out) {
  const unsigned i = threadIdx.x;
  double a = in[i], b = a * 1.5, c = a / 3.0, d = a - 7.0;
  out[i] = a;
  __syncthreads();
  a += b;
  const double next = out[i + 1];
  __syncthreads();
  c *= d;
  out[i] = a + c + next;
}
