// Device memory of the trainer. Like a framework without a cache, it asks CUDA for every tensor and gives it
// back when the tensor dies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "tests/programs/cuda_check.hpp"

enum class AllocationCall { malloc, malloc_async };

class Memory {
 public:
  explicit Memory(AllocationCall call) : call_(call) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* allocate(std::size_t bytes, cudaStream_t stream) {
    void* data = nullptr;
    if (call_ == AllocationCall::malloc) {
      REQUIRE_CUDA(cudaMalloc(&data, bytes));
    } else {
      REQUIRE_CUDA(cudaMallocAsync(&data, bytes, stream));
    }
    ++allocations_;
    return data;
  }

  // `stream` comes after everything that uses the memory. cudaFree needs no such order.
  void release(void* data, cudaStream_t stream) {
    if (call_ == AllocationCall::malloc) {
      REQUIRE_CUDA(cudaFree(data));
    } else {
      REQUIRE_CUDA(cudaFreeAsync(data, stream));
    }
  }

  std::uint64_t allocations() const { return allocations_; }

 private:
  AllocationCall call_;
  std::uint64_t allocations_ = 0;
};

// Owner of a device array.
template <class T>
class Array {
 public:
  Array() = default;
  Array(Memory& memory, cudaStream_t stream, std::size_t size)
      : memory_(&memory), stream_(stream), data_(static_cast<T*>(memory.allocate(size * sizeof(T), stream))), size_(size) {}
  Array(Array&& other) noexcept
      : memory_(other.memory_), stream_(other.stream_), data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  Array& operator=(Array&& other) noexcept {
    if (this == &other) return *this;
    free();
    memory_ = other.memory_;
    stream_ = other.stream_;
    data_ = std::exchange(other.data_, nullptr);
    size_ = other.size_;
    return *this;
  }
  ~Array() { free(); }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

  // The stream whose work the release has to follow, when it is not the one of the allocation.
  void release_on(cudaStream_t stream) { stream_ = stream; }

  void free() {
    if (data_) memory_->release(std::exchange(data_, nullptr), stream_);
  }

 private:
  Memory* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

using Tensor = Array<float>;
