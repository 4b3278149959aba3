// Legacy IPC: cuMemAlloc memory opened by other processes of the machine.
#include <unistd.h>

#include <cstring>
#include <map>

#include "impl.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/memory.hpp"
#include "tools/simgpu/driver/process.hpp"

namespace simgpu {
namespace {

constexpr std::uint32_t kIpcMagic = 0x6369'7073;

struct Ticket {  // the contents of a CUipcMemHandle
  std::uint32_t magic;
  std::uint32_t slot;  // of the exporter, who must live
  std::uint64_t machine_id;
  ChunkName chunk;
  std::uint64_t offset, size;  // of the block in the chunk
  std::uint32_t user;
};
static_assert(sizeof(Ticket) <= sizeof(CUipcMemHandle));

// A chunk is mapped once, however many of its blocks are opened. Guarded by memory_mutex().
struct OpenChunk {
  std::uintptr_t base = 0;
  std::uint32_t blocks = 0;
};
std::map<const Chunk*, OpenChunk>& open_chunks() {
  static auto* const instance = new std::map<const Chunk*, OpenChunk>;
  return *instance;
}

}  // namespace

namespace impl {

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr dptr) {
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(memory_mutex());
  const Range* const range = address_space().find(dptr);
  const bool exportable = range && !range->pool && (range->kind == RangeKind::device || range->kind == RangeKind::slab_block);
  if (!exportable) return CUDA_ERROR_INVALID_VALUE;  // mappings of chunks have their own way of sharing
  const std::uint64_t offset = range->slab ? range->base - range->slab->base() : 0;
  const Ticket ticket{kIpcMagic, control().own_slot(), control().machine_id(), range->chunk->info.name, offset, range->size,
                      ::getuid()};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &ticket, sizeof ticket);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* dptr, CUipcMemHandle handle, unsigned int flags) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  Ticket ticket{};
  std::memcpy(static_cast<void*>(&ticket), &handle, sizeof ticket);
  if (!dptr || (flags & ~static_cast<unsigned>(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (ticket.magic != kIpcMagic || ticket.machine_id != control().machine_id()) return CUDA_ERROR_INVALID_VALUE;
  if (ticket.user != ::getuid()) return CUDA_ERROR_INVALID_VALUE;
  if (ticket.slot == control().own_slot()) return CUDA_ERROR_INVALID_CONTEXT;  // not in the exporter's own process
  if (!control().slot_lives(ticket.slot)) return CUDA_ERROR_INVALID_VALUE;

  const std::lock_guard lock(memory_mutex());
  Chunk* chunk = nullptr;
  if (const CUresult result = chunks().adopt(ticket.chunk, chunk)) return result;
  const int device = ordinal_of(chunk->info.place);
  OpenChunk& open = open_chunks()[chunk];
  if (!open.base) open.base = device < 0 ? 0 : blocks().map_whole(*chunk);
  if (!open.base) {
    open_chunks().erase(chunk);
    chunks().discard_if_unused(*chunk);
    return device < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_OUT_OF_MEMORY;
  }
  *dptr = open.base + ticket.offset;
  if (Range* const range = address_space().find_base(*dptr)) {  // opened before: the same pointer
    ++range->opens;
    return CUDA_SUCCESS;
  }
  Range range;
  range.base = *dptr;
  range.size = ticket.size;
  range.kind = RangeKind::ipc;
  range.device = device;
  range.context = context;
  range.chunk = chunk;
  range.opens = 1;
  address_space().add(range);
  ++open.blocks;
  return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  if (const CUresult fault = context->synchronize()) return fault;
  std::unique_lock lock(memory_mutex());
  Range* const range = address_space().find_base(dptr);
  if (!range || range->kind != RangeKind::ipc) return CUDA_ERROR_INVALID_VALUE;
  if (--range->opens != 0) return CUDA_SUCCESS;
  Chunk& chunk = *range->chunk;
  address_space().wait_untouched(lock, range->base, range->end(), "cuIpcCloseMemHandle");
  address_space().remove(dptr);
  OpenChunk& open = open_chunks()[&chunk];
  if (--open.blocks != 0) return CUDA_SUCCESS;
  const std::uintptr_t base = open.base;
  open_chunks().erase(&chunk);
  blocks().unmap_whole(chunk, base);
  return CUDA_SUCCESS;
}

}  // namespace impl
}  // namespace simgpu
