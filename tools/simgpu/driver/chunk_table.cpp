#include "tools/simgpu/driver/chunk_table.hpp"

#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {

CUresult ChunkTable::create(ChunkInfo info, Chunk*& chunk) {
  if (const CUresult result = control_.create(info)) return result;
  constexpr std::uint64_t kPoisonLimit = 32u << 20;  // poison is real memory
  if (settings().poison && info.size <= kPoisonLimit) control_.files().fill(info.place, info.offset, info.size, 0xDB);
  auto owned = std::make_unique<Chunk>();
  owned->info = info;
  chunk = owned.get();
  by_name_[key(info.name)] = std::move(owned);
  return CUDA_SUCCESS;
}

CUresult ChunkTable::adopt(ChunkName name, Chunk*& chunk) {
  const auto known = by_name_.find(key(name));
  if (known != by_name_.end()) {
    chunk = known->second.get();
    return CUDA_SUCCESS;
  }
  auto owned = std::make_unique<Chunk>();
  if (const CUresult result = control_.adopt(name, owned->info)) return result;
  owned->imported = true;
  chunk = owned.get();
  by_name_[key(name)] = std::move(owned);
  return CUDA_SUCCESS;
}

Chunk* ChunkTable::find(CUmemGenericAllocationHandle handle) const {
  const auto found = by_handle_.find(handle);
  return found == by_handle_.end() ? nullptr : found->second;
}

CUmemGenericAllocationHandle ChunkTable::retain(Chunk& chunk) {
  if (chunk.references++ == 0) {
    chunk.handle = next_handle_++;
    by_handle_[chunk.handle] = &chunk;
  }
  return chunk.handle;
}

void ChunkTable::release(Chunk& chunk) {
  if (--chunk.references != 0) return;
  by_handle_.erase(chunk.handle);
  chunk.handle = 0;
  discard_if_unused(chunk);
}

void ChunkTable::remove_mapping(Chunk& chunk) {
  --chunk.mappings;
  discard_if_unused(chunk);
}

void ChunkTable::discard_if_unused(Chunk& chunk) {
  if (chunk.references != 0 || chunk.mappings != 0) return;
  const ChunkInfo info = chunk.info;
  by_name_.erase(key(info.name));
  control_.drop(info.hold);
}

}  // namespace simgpu
