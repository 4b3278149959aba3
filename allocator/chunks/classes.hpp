// The class table: every chunk has one of these sizes. It is the daemon's bucket list.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "allocator/base/units.hpp"

namespace vramd::chunks {

using namespace literals;

struct ChunkClass {
  Bytes bytes;
  bool in_use;  // a class that is not in use yet is refused like any other odd size
};

inline constexpr std::array<ChunkClass, 4> kClasses{{
    {2_MiB, true},     // one granule: small blocks and the ends of large ones
    {20_MiB, false},   // the handle size of PyTorch's expandable segments
    {32_MiB, true},    // the everyday size
    {128_MiB, false},  // blocks of 512 MiB and more
}};

// Index into kClasses; empty when `bytes` is no class in use.
constexpr std::optional<std::size_t> class_of(Bytes bytes) {
  for (std::size_t i = 0; i < kClasses.size(); ++i)
    if (kClasses[i].in_use && kClasses[i].bytes == bytes) return i;
  return std::nullopt;
}

}  // namespace vramd::chunks
