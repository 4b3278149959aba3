// The ways in which replay asks for memory. Errors other than "out of memory" end the program.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>

class Backend {
 public:
  virtual ~Backend() = default;

  // nullptr: out of memory.
  virtual void* allocate(std::uint64_t size, cudaStream_t stream) = 0;

  virtual void release(void* data, std::uint64_t size, cudaStream_t stream) = 0;

  // Nothing that was enqueued may use the memory any more when release() is called.
  virtual bool release_needs_idle() const { return false; }
};

// api: "malloc" cudaMalloc; "async" cudaMallocAsync; "driver" cuMemAlloc; "vmm" one cuMemCreate and mapping
// per block.
std::unique_ptr<Backend> make_backend(const std::string& api);
