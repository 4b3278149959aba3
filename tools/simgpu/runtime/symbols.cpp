// Device variables: __device__ and __constant__. Copies use the rows of cudaMemcpy and cudaMemcpyAsync.
#include "tools/simgpu/runtime/copies.hpp"
#include "tools/simgpu/runtime/registration.hpp"

namespace simgpu::runtime {
namespace {

// The part of a variable that a copy touches, which must lie inside the variable.
cudaError_t part_of(const void* symbol, std::size_t offset, std::size_t count, void*& pointer) {
  if (const cudaError_t error = context_ready()) return error;
  CUdeviceptr start = 0;
  std::size_t size = 0;
  if (const cudaError_t error = find_symbol(symbol, start, size)) return error;
  if (offset > size || count > size - offset) return cudaErrorInvalidValue;
  pointer = reinterpret_cast<void*>(start + offset);
  return cudaSuccess;
}

}  // namespace

SIMGPU_API cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  if (pointer == nullptr) return finish(cudaErrorInvalidValue);
  return finish(part_of(symbol, 0, 0, *pointer));
}

SIMGPU_API cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  if (const cudaError_t error = context_ready()) return finish(error);
  CUdeviceptr start = 0;
  return finish(find_symbol(symbol, start, *size));
}

SIMGPU_BOTH_FORMS(cudaMemcpyToSymbol, _ptds,
                  (const void* symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind kind),
                  (symbol, from, count, offset, kind)) {
  void* pointer = nullptr;
  if (const cudaError_t error = part_of(symbol, offset, count, pointer)) return finish(error);
  return copy_now<form>(pointer, from, count, kind);
}

SIMGPU_BOTH_FORMS(cudaMemcpyFromSymbol, _ptds, (void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind),
                  (to, symbol, count, offset, kind)) {
  void* pointer = nullptr;
  if (const cudaError_t error = part_of(symbol, offset, count, pointer)) return finish(error);
  return copy_now<form>(to, pointer, count, kind);
}

SIMGPU_BOTH_FORMS(cudaMemcpyToSymbolAsync, _ptsz,
                  (const void* symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind kind, cudaStream_t stream),
                  (symbol, from, count, offset, kind, stream)) {
  void* pointer = nullptr;
  if (const cudaError_t error = part_of(symbol, offset, count, pointer)) return finish(error);
  return copy_on<form>(pointer, from, count, kind, stream);
}

SIMGPU_BOTH_FORMS(cudaMemcpyFromSymbolAsync, _ptsz,
                  (void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind, cudaStream_t stream),
                  (to, symbol, count, offset, kind, stream)) {
  void* pointer = nullptr;
  if (const cudaError_t error = part_of(symbol, offset, count, pointer)) return finish(error);
  return copy_on<form>(to, pointer, count, kind, stream);
}

}  // namespace simgpu::runtime
