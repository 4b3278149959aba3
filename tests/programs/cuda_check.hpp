// What the test programs do when CUDA refuses: say so with name and text, and exit with 2.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

constexpr int kExitWrongResult = 1;
constexpr int kExitCudaError = 2;
constexpr int kExitUsage = 64;

inline void require(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "cuda error: %s (%d): %s: in %s at %s:%d\n", cudaGetErrorName(error), static_cast<int>(error),
               cudaGetErrorString(error), call, file, line);
  std::exit(kExitCudaError);
}

#define REQUIRE_CUDA(call) require((call), #call, __FILE__, __LINE__)
