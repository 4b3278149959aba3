// runtime_checks: many small checks of the CUDA runtime, one line each.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

// What is wrong; empty when all is well.
using Verdict = std::string;

struct Check {
  const char* name;
  Verdict (*run)();
};

std::vector<Check> memory_checks();
std::vector<Check> order_checks();
std::vector<Check> kernel_checks();

// Adds `amount` to each of `n` values; n is a multiple of 128. Errors show in cudaGetLastError.
void launch_add_to_each(int* values, int amount, int n, cudaStream_t stream);

Verdict describe_failure(cudaError_t error, const char* call);

// Ends a check when a call fails, or a condition does not hold.
#define TRY(call)                                                      \
  do {                                                                 \
    const cudaError_t error_ = (call);                                 \
    if (error_ != cudaSuccess) return describe_failure(error_, #call); \
  } while (0)
#define EXPECT(condition)                           \
  do {                                              \
    if (!(condition)) return "not so: " #condition; \
  } while (0)

// Device memory for the length of a check, however it ends.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) { error_ = cudaMalloc(&pointer_, count * sizeof(T)); }
  ~DeviceArray() {
    if (pointer_ != nullptr) (void)cudaFree(pointer_);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  cudaError_t error() const { return error_; }
  T* get() const { return pointer_; }
  T* release() {
    T* pointer = pointer_;
    pointer_ = nullptr;
    return pointer;
  }

 private:
  T* pointer_ = nullptr;
  cudaError_t error_;
};
