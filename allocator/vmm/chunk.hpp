// One physical allocation, as a value. Who holds it must give it back to the source it came from, exactly once.
#pragma once

#include <cuda.h>

#include <concepts>
#include <cstddef>

#include "allocator/base/result.hpp"
#include "allocator/base/units.hpp"

namespace vramd {

using namespace literals;

inline constexpr Bytes kSmallChunk = 2_MiB;  // also the granularity of mapping on every GPU known (checked at start)
inline constexpr Bytes kLargeChunk = 32_MiB;

struct Chunk {
  CUmemGenericAllocationHandle handle = 0;
  ChunkId id{};  // 0 = created by this process itself
  Bytes size;
  std::uint32_t lender = 0;  // which of the process's connections to daemons the id belongs to
};

// Where a heap gets its chunks from. Its functions may block on the driver or on the daemon, are called without any lock
// held, and may be called by several threads at once.
template <class S>
concept ChunkSource = requires(S& source, int device, Bytes size, const Chunk* chunks, std::size_t count) {
  // A chunk of exactly `size` on `device`. Errors: out_of_memory, over_limit, others as they come.
  { source.acquire(device, size) } -> std::same_as<Result<Chunk>>;
  // What could be had now; a hint, since others may take it first.
  { source.available(device) } -> std::same_as<Bytes>;
  // Takes chunks back: unmapped everywhere in this process, and no work in flight can reach them.
  { source.give_back(device, chunks, count) } -> std::same_as<void>;
};

}  // namespace vramd
