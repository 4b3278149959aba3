// cuMemAlloc, cuMemAllocPitch, cuMemFree: what a program's cudaMalloc and cudaFree become.
#include "shim/calls/capture.hpp"
#include "shim/calls/memory.hpp"
#include "shim/calls/native_blocks.hpp"
#include "shim/hook/driver_library.hpp"
#include "shim/hook/generated/shim_calls.hpp"
#include "shim/hook/process.hpp"

namespace vramd::shim::calls {
namespace {

using hook::Entry;
using hook::real;

// Pitch of 2D allocations: what the driver uses for textures on all current GPUs is 32 bytes, for cudaMallocPitch 512.
constexpr Bytes kPitch = 512_B;

void note_native(Memory& memory, CUdeviceptr base, Bytes size) {
  CUcontext context = nullptr;
  (void)memory.driver().ctx_get_current(&context);
  const int device = memory.current_device();
  if (device < 0 || device >= memory.device_count()) return;
  if (!remember_native({base, size, device, context})) return;
  memory.source().note_native(device, size);
}

// An allocation that the driver makes. It enters the account, whatever the limit says.
CUresult allocate_native(Memory& memory, CUdeviceptr* out, std::size_t size) {
  const CUresult result = real<Entry::cuMemAlloc_v2>()(out, size);
  if (result == CUDA_SUCCESS) note_native(memory, *out, {size});
  return result;
}

CUresult free_native(Memory& memory, CUdeviceptr pointer) {
  NativeBlock block;
  // Before the call: after it the address may be another block's.
  const bool noted = forget_native(pointer, block);
  const CUresult result = real<Entry::cuMemFree_v2>()(pointer);
  if (!noted) return result;
  if (result == CUDA_SUCCESS) {
    memory.source().leave_native(block.device, block.size);
  } else {
    (void)remember_native(block);
  }
  return result;
}

// During a capture: natively, inside the limit, so that the free can be native too.
CUresult allocate_in_capture(Memory& memory, Heap& heap, CUdeviceptr* out, Bytes size, const void* context) {
  if (!memory.source().enter_native(heap.device(), size)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = real<Entry::cuMemAlloc_v2>()(out, size.value);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    RelaxedCapture relaxed(memory.driver());
    if (heap.give_back_idle({})) result = real<Entry::cuMemAlloc_v2>()(out, size.value);
  }
  if (result != CUDA_SUCCESS) {
    memory.source().leave_native(heap.device(), size);
    return result;
  }
  (void)remember_native({*out, size, heap.device(), context});
  return result;
}

CUresult allocate(Memory& memory, Heap& heap, CUdeviceptr* out, std::size_t size) {
  CUcontext context = nullptr;
  if (const CUresult asked = memory.driver().ctx_get_current(&context); asked != CUDA_SUCCESS) return asked;
  // Refused at once: else it would be gathered chunk by chunk, at the cost of everybody's memory, and given back again.
  if (memory.source().out_of_reach(heap.device(), {size})) return CUDA_ERROR_OUT_OF_MEMORY;
  if (capture_in_progress()) return allocate_in_capture(memory, heap, out, {size}, context);
  free_after_captures(memory);
  auto block = heap.allocate({size}, context);
  if (block) {
    *out = address(*block);
    return CUDA_SUCCESS;
  }
  const Error& error = block.error();
  if (error.code == ErrorCode::out_of_memory || error.code == ErrorCode::over_limit) return CUDA_ERROR_OUT_OF_MEMORY;
  // Our way of allocating has failed, which the program's would not have had to: let the driver answer.
  log(LogLevel::warn, "%s failed (%d): %llu bytes are allocated natively", error.what, error.detail,
      static_cast<unsigned long long>(size));
  return allocate_native(memory, out, size);
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
  const Bytes row = round_up({width}, kPitch);
  const bool overflow = row == Bytes{0} || height > UINT64_MAX / row.value;
  if (heap == nullptr || overflow) {
    const CUresult result = real<Entry::cuMemAllocPitch_v2>()(out, pitch, width, height, element);
    if (result == CUDA_SUCCESS) note_native(*memory, *out, {*pitch * height});
    return result;
  }
  const CUresult result = allocate(*memory, *heap, out, row.value * height);
  if (result == CUDA_SUCCESS) *pitch = row.value;
  return result;
}

// Literal cudaFree semantics: the block is reusable when all work of its context is complete, and so is the call.
CUresult cuMemFree_v2(CUdeviceptr pointer) {
  Memory* memory = Memory::active();
  if (memory == nullptr || pointer == 0) return real<Entry::cuMemFree_v2>()(pointer);
  hook::OwnCall own;
  if (memory->current_device() < 0) return real<Entry::cuMemFree_v2>()(pointer);  // without a context: the driver's error
  Heap::Owned owned;
  heap::BlockInfo block;
  Heap* heap = memory->owner(DevicePtr{pointer}, owned, block);
  if (heap == nullptr) return free_native(*memory, pointer);
  if (owned != Heap::Owned::block || address(block.base) != pointer) return real<Entry::cuMemFree_v2>()(no_device_address());
  const bool in_capture = capture_in_progress();
  if (in_capture) {
    if (const CUresult judged = judge_memory_call_in_capture(); judged != CUDA_SUCCESS) return judged;
  } else {
    free_after_captures(*memory);
  }
  // From here on a second free of the same block, by another thread too, is an error.
  if (heap->begin_free(DevicePtr{pointer}, &block) != Heap::Owned::block)
    return real<Entry::cuMemFree_v2>()(no_device_address());
  if (in_capture) {
    if (!keep_until_captures_end(*heap, block))
      log(LogLevel::warn, "no host memory: a block freed in a capture stays allocated");
    return CUDA_SUCCESS;
  }
  if (auto quiet = memory->synchronize(block.context); !quiet) {
    // A capture that has just begun, or a context that is broken: the program learns it here, as natively, and the block is
    // still its own.
    heap->undo_free(block);
    return to_result(quiet.error());
  }
  heap->finish_free(block);
  return CUDA_SUCCESS;
}

}  // namespace vramd::shim::calls
