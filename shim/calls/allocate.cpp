// cuMemAlloc, cuMemAllocPitch, cuMemFree: what a program's cudaMalloc and cudaFree become.
#include "shim/calls/capture.hpp"
#include "shim/calls/memory.hpp"
#include "shim/hook/driver_library.hpp"
#include "shim/hook/generated/shim_calls.hpp"
#include "shim/hook/process.hpp"

namespace vramd::shim::calls {
namespace {

using hook::Entry;
using hook::real;

// Pitch of 2D allocations: what the driver uses for textures on all current GPUs is 32 bytes, for cudaMallocPitch 512.
constexpr Bytes kPitch = 512_B;

// An allocation that the driver makes. In a managed process it enters the daemon's account.
CUresult allocate_native(Memory& memory, CUdeviceptr* out, std::size_t size) {
  const CUresult result = real<Entry::cuMemAlloc_v2>()(out, size);
  if (result == CUDA_SUCCESS) memory.source().charge_native(memory.current_device(), static_cast<std::int64_t>(size));
  return result;
}

CUresult free_native(Memory& memory, CUdeviceptr pointer) {
  std::size_t size = 0;
  const int device = memory.current_device();
  if (real<Entry::cuMemGetAddressRange_v2>()(nullptr, &size, pointer) != CUDA_SUCCESS) size = 0;
  const CUresult result = real<Entry::cuMemFree_v2>()(pointer);
  if (result == CUDA_SUCCESS && size != 0) memory.source().charge_native(device, -static_cast<std::int64_t>(size));
  return result;
}

CUresult allocate(Memory& memory, Heap& heap, CUdeviceptr* out, std::size_t size) {
  if (capture_in_progress()) {
    if (const CUresult judged = judge_memory_call_in_capture(); judged != CUDA_SUCCESS) return judged;
  } else {
    free_after_captures(memory);
  }
  CUcontext context = nullptr;
  if (const CUresult asked = memory.driver().ctx_get_current(&context); asked != CUDA_SUCCESS) return asked;
  // Refused at once: else it would be gathered chunk by chunk, at the cost of everybody's memory, and given back again.
  if (memory.source().out_of_reach(heap.device(), {size})) return CUDA_ERROR_OUT_OF_MEMORY;
  RelaxedCapture relaxed(memory.driver());
  auto block = heap.allocate({size}, context);
  if (block) {
    *out = address(*block);
    return CUDA_SUCCESS;
  }
  CUresult result;
  return Memory::to_result(block.error(), result) ? result : allocate_native(memory, out, size);
}

}  // namespace

CUresult cuMemAlloc_v2(CUdeviceptr* out, std::size_t size) {
  Memory* memory = Memory::active();
  if (memory == nullptr || out == nullptr || size == 0) return real<Entry::cuMemAlloc_v2>()(out, size);
  hook::OwnCall own;
  // Without a current context the driver's own answer is the right one.
  Heap* heap = memory->heap(memory->current_device());
  return heap == nullptr ? allocate_native(*memory, out, size) : allocate(*memory, *heap, out, size);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t height, unsigned int element) {
  Memory* memory = Memory::active();
  const bool sensible =
      out != nullptr && pitch != nullptr && width != 0 && height != 0 && (element == 4 || element == 8 || element == 16);
  if (memory == nullptr || !sensible) return real<Entry::cuMemAllocPitch_v2>()(out, pitch, width, height, element);
  hook::OwnCall own;
  Heap* heap = memory->heap(memory->current_device());
  if (heap == nullptr) return real<Entry::cuMemAllocPitch_v2>()(out, pitch, width, height, element);
  const Bytes row = round_up({width}, kPitch);
  if (row == Bytes{0} || height > UINT64_MAX / row.value) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = allocate(*memory, *heap, out, row.value * height);
  if (result == CUDA_SUCCESS) *pitch = row.value;
  return result;
}

// Literal cudaFree semantics: the block is reusable when all work of its context is complete, and so is the call.
CUresult cuMemFree_v2(CUdeviceptr pointer) {
  Memory* memory = Memory::active();
  if (memory == nullptr || pointer == 0) return real<Entry::cuMemFree_v2>()(pointer);
  hook::OwnCall own;
  Heap::Owned owned;
  heap::BlockInfo block;
  Heap* heap = memory->owner(DevicePtr{pointer}, owned, block);
  if (heap == nullptr) return free_native(*memory, pointer);
  if (owned != Heap::Owned::block || address(block.base) != pointer) return CUDA_ERROR_INVALID_VALUE;
  const bool in_capture = capture_in_progress();
  if (in_capture) {
    if (const CUresult judged = judge_memory_call_in_capture(); judged != CUDA_SUCCESS) return judged;
  }
  // From here on a second free of the same block, by another thread too, is an error.
  if (heap->begin_free(DevicePtr{pointer}, &block) != Heap::Owned::block) return CUDA_ERROR_INVALID_VALUE;
  if (in_capture) {
    if (!keep_until_captures_end(*heap, block))
      log(LogLevel::warn, "no host memory: a block freed in a capture stays allocated");
    return CUDA_SUCCESS;
  }
  free_after_captures(*memory);
  if (auto quiet = memory->synchronize(block.context); !quiet) {
    // The context is broken (a sticky error): the program learns it here, as natively, and the block is not reused.
    CUresult result;
    return Memory::to_result(quiet.error(), result) ? result : CUDA_ERROR_UNKNOWN;
  }
  heap->finish_free(block.base);
  return CUDA_SUCCESS;
}

}  // namespace vramd::shim::calls
