// cuMemAlloc's memory: small blocks out of 2 MiB slabs, the others with a chunk of their own.
// Not thread-safe: callers hold memory_mutex().
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tools/simgpu/driver/address_space.hpp"

namespace simgpu {

constexpr std::size_t kSmallestBlock = 512;
constexpr std::size_t kSlabLimit = 1u << 20;  // requests below it come out of slabs
constexpr std::size_t kBlockClasses = 12;     // 512 B, 1 KiB, ..., 1 MiB

// 2 MiB of a device, divided into blocks of one size.
class Slab {
 public:
  Slab(int device, Chunk& chunk, std::uintptr_t base) : device_(device), chunk_(chunk), base_(base) {}

  void divide(std::size_t block_class);
  std::uintptr_t take();
  void give(std::uintptr_t block);
  bool full() const { return free_.empty(); }
  bool empty() const { return free_.size() == kGranularity / block_size(); }
  std::size_t block_size() const { return kSmallestBlock << class_; }
  std::size_t block_class() const { return class_; }
  int device() const { return device_; }
  Chunk& chunk() const { return chunk_; }
  std::uintptr_t base() const { return base_; }

 private:
  const int device_;
  Chunk& chunk_;
  const std::uintptr_t base_;
  std::size_t class_ = 0;
  std::vector<std::uint16_t> free_;
};

class Blocks {
 public:
  Blocks(ChunkTable& chunks, AddressSpace& space) : chunks_(chunks), space_(space) {}

  // Allocates on a device and registers the range; `context`, `pool` and `flags` of it are the caller's to
  // fill.
  CUresult allocate(int ordinal, std::uint32_t place, std::size_t size, Range*& range);
  // Frees a range of kind device or slab_block.
  void free(const Range& range);
  // Gives back the empty slab that each device keeps so that alternating allocation and free is cheap.
  void trim_spare();
  // The same, and what pools keep: for when memory is short.
  void trim();

  // Maps a whole chunk for this process's use, readable and writable. 0 when there is no address space.
  std::uintptr_t map_whole(Chunk& chunk);
  void unmap_whole(Chunk& chunk, std::uintptr_t base);

 private:
  CUresult allocate_small(int ordinal, std::uint32_t place, std::size_t size, Range*& range);
  CUresult allocate_large(int ordinal, std::uint32_t place, std::size_t size, Range*& range);
  CUresult new_slab(int ordinal, std::uint32_t place, Slab*& slab);
  CUresult new_mapped_chunk(std::uint32_t place, std::size_t size, Chunk*& chunk, std::uintptr_t& base);
  void give_back(Slab& slab);

  struct DeviceSlabs {
    std::array<std::vector<Slab*>, kBlockClasses> usable;  // with a free block, in use
    Slab* spare = nullptr;                                 // wholly free
  };

  ChunkTable& chunks_;
  AddressSpace& space_;
  std::array<DeviceSlabs, kMaxDevices> devices_;
  std::map<const Slab*, std::unique_ptr<Slab>> slabs_;
};

}  // namespace simgpu
