#include "tools/simgpu/driver/blocks.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tools/simgpu/driver/memory.hpp"
#include "tools/simgpu/driver/process.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {
namespace {

constexpr std::size_t kPoisonLimit = 32u << 20;

void poison(std::uintptr_t base, std::size_t size) {
  if (!settings().poison || size > kPoisonLimit) return;
  address_space().open_span(base, base + size, true);
  std::memset(reinterpret_cast<void*>(base), 0xDB, size);
  address_space().close_span(base, base + size, true);
}

std::size_t class_of(std::size_t size) {
  const auto blocks = (size + kSmallestBlock - 1) / kSmallestBlock;
  return static_cast<std::size_t>(std::bit_width(blocks - 1));
}

}  // namespace

void Slab::divide(std::size_t block_class) {
  class_ = block_class;
  const auto count = static_cast<std::uint16_t>(kGranularity / block_size());
  free_.resize(count);
  for (std::uint16_t i = 0; i < count; ++i) free_[i] = static_cast<std::uint16_t>(count - 1 - i);
}

std::uintptr_t Slab::take() {
  const std::uint16_t index = free_.back();
  free_.pop_back();
  return base_ + index * block_size();
}

void Slab::give(std::uintptr_t block) { free_.push_back(static_cast<std::uint16_t>((block - base_) / block_size())); }

CUresult Blocks::allocate(int ordinal, std::uint32_t place, std::size_t size, Range*& range) {
  const CUresult result =
      size < kSlabLimit ? allocate_small(ordinal, place, size, range) : allocate_large(ordinal, place, size, range);
  if (result == CUDA_SUCCESS) poison(range->base, range->size);
  return result;
}

CUresult Blocks::allocate_small(int ordinal, std::uint32_t place, std::size_t size, Range*& range) {
  const std::size_t block_class = class_of(size);
  DeviceSlabs& device = devices_[static_cast<std::size_t>(ordinal)];
  std::vector<Slab*>& usable = device.usable[block_class];
  if (usable.empty()) {
    Slab* slab = std::exchange(device.spare, nullptr);
    if (!slab) {
      if (const CUresult result = new_slab(ordinal, place, slab)) return result;
      slab->divide(block_class);
    } else if (slab->block_class() != block_class) {
      slab->divide(block_class);
    }
    usable.push_back(slab);
  }
  Slab& slab = *usable.back();
  Range fresh;
  fresh.base = slab.take();
  if (slab.full()) usable.pop_back();
  fresh.size = size;
  fresh.kind = RangeKind::slab_block;
  fresh.device = ordinal;
  fresh.chunk = &slab.chunk();
  fresh.slab = &slab;
  range = &space_.add(fresh);
  return CUDA_SUCCESS;
}

CUresult Blocks::allocate_large(int ordinal, std::uint32_t place, std::size_t size, Range*& range) {
  if (size > SIZE_MAX - kGranularity) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::size_t rounded = (size + kGranularity - 1) / kGranularity * kGranularity;
  Range fresh;
  if (const CUresult result = new_mapped_chunk(place, rounded, fresh.chunk, fresh.base)) return result;
  fresh.size = size;
  fresh.kind = RangeKind::device;
  fresh.device = ordinal;
  range = &space_.add(fresh);
  return CUDA_SUCCESS;
}

CUresult Blocks::new_mapped_chunk(std::uint32_t place, std::size_t size, Chunk*& chunk, std::uintptr_t& base) {
  ChunkInfo info;
  info.place = place;
  info.size = size;
  info.location_type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUresult result = chunks_.create(info, chunk);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {  // a spare slab may be what is missing
    trim();
    result = chunks_.create(info, chunk);
  }
  if (result != CUDA_SUCCESS) return result;
  base = map_whole(*chunk);
  if (base) return CUDA_SUCCESS;
  chunks_.discard_if_unused(*chunk);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Blocks::new_slab(int ordinal, std::uint32_t place, Slab*& slab) {
  Chunk* chunk = nullptr;
  std::uintptr_t base = 0;
  if (const CUresult result = new_mapped_chunk(place, kGranularity, chunk, base)) return result;
  auto owned = std::make_unique<Slab>(ordinal, *chunk, base);
  slab = owned.get();
  slabs_[slab] = std::move(owned);
  return CUDA_SUCCESS;
}

void Blocks::free(const Range& range) {
  poison(range.base, range.size);
  const std::uintptr_t base = range.base;
  if (range.kind == RangeKind::device) {
    Chunk& chunk = *range.chunk;
    space_.remove(base);
    unmap_whole(chunk, base);
    return;
  }
  Slab& slab = *range.slab;
  space_.remove(base);
  DeviceSlabs& device = devices_[static_cast<std::size_t>(slab.device())];
  std::vector<Slab*>& usable = device.usable[slab.block_class()];
  if (slab.full()) usable.push_back(&slab);
  slab.give(base);
  if (!slab.empty()) return;
  std::erase(usable, &slab);
  if (device.spare) {
    give_back(slab);
  } else {
    device.spare = &slab;
  }
}

void Blocks::trim() {
  for_each_pool([](Pool& pool) { trim_pool(pool, 0); });
  trim_spare();
}

void Blocks::trim_spare() {
  for (DeviceSlabs& device : devices_) {
    if (device.spare) give_back(*std::exchange(device.spare, nullptr));
  }
}

void Blocks::give_back(Slab& slab) {
  unmap_whole(slab.chunk(), slab.base());
  slabs_.erase(&slab);
}

std::uintptr_t Blocks::map_whole(Chunk& chunk) {
  const ChunkInfo& info = chunk.info;
  const std::uintptr_t base = space_.reserve(info.size, kGranularity, 0);
  if (!base) return 0;
  const bool mapped = control().files().map(info.place, info.offset, base, info.size) &&
                      space_.add_area(base, info.size, settings().protect ? PROT_NONE : PROT_READ | PROT_WRITE);
  if (!mapped) {
    space_.remove_area(base);
    space_.release(base, info.size);
    return 0;
  }
  chunks_.add_mapping(chunk);
  return base;
}

void Blocks::unmap_whole(Chunk& chunk, std::uintptr_t base) {
  space_.remove_area(base);
  space_.release(base, chunk.info.size);
  chunks_.remove_mapping(chunk);
}

}  // namespace simgpu
