// Questions about memory: answered so that a block looks like what cuMemAlloc returns, and the device like what the
// session may use of it.
#include "shim/calls/memory.hpp"
#include "shim/hook/driver_library.hpp"
#include "shim/hook/generated/shim_calls.hpp"
#include "shim/hook/process.hpp"

namespace vramd::shim::calls {
namespace {

using hook::Entry;
using hook::real;

enum class Answer : std::uint8_t { given, invalid, ask_driver };

template <class T>
Answer give(void* out, T value) {
  __builtin_memcpy(out, &value, sizeof value);
  return Answer::given;
}

// Types of the values: cuPointerGetAttribute in the driver API manual.
Answer attribute_of(const heap::BlockInfo& block, int device, CUdeviceptr pointer, CUpointer_attribute attribute, void* out) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return give(out, block.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return give(out, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return give(out, pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: return Answer::invalid;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:  // unique in the process: each device counts for itself
      return give(out, block.id * kMaxDevices + static_cast<unsigned>(device));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return give(out, 0u);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return give(out, device);
    // The truth for now: legacy IPC of these blocks is refused (see cuIpcGetMemHandle).
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return give(out, 0u);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return give(out, block.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return give(out, block.size);
    case CU_POINTER_ATTRIBUTE_MAPPED: return give(out, 1u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return give(out, 0ull);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return give(out, 3u);  // CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return give(out, static_cast<void*>(nullptr));
    default: return Answer::ask_driver;
  }
}

// Our heap that owns `pointer`, with its block; nullptr with `gone` set when the block is no longer there.
Heap* find_block(Memory* memory, CUdeviceptr pointer, heap::BlockInfo& block, bool& gone) {
  Heap::Owned owned;
  Heap* heap = memory == nullptr ? nullptr : memory->owner(DevicePtr{pointer}, owned, block);
  gone = heap != nullptr && owned != Heap::Owned::block;
  return gone ? nullptr : heap;
}

}  // namespace

CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  std::size_t device_free = 0, device_total = 0;
  const CUresult result = real<Entry::cuMemGetInfo_v2>()(&device_free, &device_total);
  Bytes shown_free{device_free}, shown_total{device_total};
  if (Memory* memory = result == CUDA_SUCCESS ? Memory::active() : nullptr) {
    hook::OwnCall own;
    const int device = memory->current_device();
    if (Heap* heap = memory->heap(device)) memory->source().memory_info(device, heap->totals().free, shown_free, shown_total);
  }
  if (result != CUDA_SUCCESS) return result;
  if (free != nullptr) *free = shown_free.value;
  if (total != nullptr) *total = shown_total.value;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  const CUresult result = real<Entry::cuDeviceTotalMem_v2>()(bytes, device);
  Memory* memory = result == CUDA_SUCCESS ? Memory::active() : nullptr;
  if (memory == nullptr || memory->heap(device) == nullptr) return result;
  const Bytes limit = memory->source().limit(device);
  if (*bytes > limit.value) *bytes = limit.value;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* size, CUdeviceptr pointer) {
  heap::BlockInfo block;
  bool gone;
  if (find_block(Memory::active(), pointer, block, gone) == nullptr)
    return real<Entry::cuMemGetAddressRange_v2>()(base, size, gone ? no_device_address() : pointer);
  if (base != nullptr) *base = address(block.base);
  if (size != nullptr) *size = block.size.value;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  heap::BlockInfo block;
  bool gone;
  Heap* heap = data == nullptr ? nullptr : find_block(Memory::active(), pointer, block, gone);
  if (data == nullptr) return real<Entry::cuPointerGetAttribute>()(data, attribute, pointer);
  if (heap == nullptr) return real<Entry::cuPointerGetAttribute>()(data, attribute, gone ? no_device_address() : pointer);
  switch (attribute_of(block, heap->device(), pointer, attribute, data)) {
    case Answer::given: return CUDA_SUCCESS;
    case Answer::invalid: return CUDA_ERROR_INVALID_VALUE;
    case Answer::ask_driver: break;
  }
  return real<Entry::cuPointerGetAttribute>()(data, attribute, pointer);
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr pointer) {
  heap::BlockInfo block;
  bool gone;
  Heap* heap = find_block(Memory::active(), pointer, block, gone);
  if (heap == nullptr || attributes == nullptr || data == nullptr)
    return real<Entry::cuPointerGetAttributes>()(count, attributes, data, gone ? no_device_address() : pointer);
  for (unsigned int i = 0; i < count; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute_of(block, heap->device(), pointer, attributes[i], data[i])) {
      case Answer::given: break;
      // Where the singular form refuses, the plural form succeeds with nothing.
      case Answer::invalid: give(data[i], static_cast<void*>(nullptr)); break;
      case Answer::ask_driver:
        if (const CUresult result = real<Entry::cuPointerGetAttributes>()(1, attributes + i, data + i, pointer);
            result != CUDA_SUCCESS)
          return result;
        break;
    }
  }
  return CUDA_SUCCESS;
}

// Libraries tell cuMemAlloc memory from mapped memory by whether this call fails; ours is to look like the former.
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* pointer) {
  heap::BlockInfo block;
  bool gone;
  Heap* heap = find_block(Memory::active(), reinterpret_cast<CUdeviceptr>(pointer), block, gone);
  if (heap != nullptr || gone) return CUDA_ERROR_INVALID_VALUE;
  return real<Entry::cuMemRetainAllocationHandle>()(handle, pointer);
}

}  // namespace vramd::shim::calls
