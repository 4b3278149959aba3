// The chunks that this process holds, and the handles by which the program names them.
// Not thread-safe: callers hold memory_mutex().
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "tools/simgpu/driver/control.hpp"

namespace simgpu {

struct Chunk {
  ChunkInfo info;
  CUmemGenericAllocationHandle handle = 0;  // 0 while the program has released it; mappings may keep it alive
  bool imported = false;                    // came from another process
  std::uint32_t references = 0;             // cuMemCreate, imports, retains minus releases
  std::uint32_t mappings = 0;
};

class ChunkTable {
 public:
  explicit ChunkTable(Control& control) : control_(control) {}

  // A new chunk with no handle and no mapping; the caller adds one or discards it.
  CUresult create(ChunkInfo info, Chunk*& chunk);
  // The chunk of that name, adopted if this process doesn't hold it yet.
  CUresult adopt(ChunkName name, Chunk*& chunk);

  // nullptr for a handle that was never given out or is released: handle numbers are not used twice.
  Chunk* find(CUmemGenericAllocationHandle handle) const;
  CUmemGenericAllocationHandle retain(Chunk& chunk);
  void release(Chunk& chunk);
  void add_mapping(Chunk& chunk) { ++chunk.mappings; }
  void remove_mapping(Chunk& chunk);
  // Drops the chunk when neither a handle nor a mapping needs it.
  void discard_if_unused(Chunk& chunk);

 private:
  static std::uint64_t key(ChunkName name) { return (std::uint64_t{name.generation} << 32) | name.index; }

  Control& control_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Chunk>> by_name_;
  std::unordered_map<CUmemGenericAllocationHandle, Chunk*> by_handle_;
  CUmemGenericAllocationHandle next_handle_ = 0x5117'0000'0001;
};

}  // namespace simgpu
