// Allocations that the driver made for the program and that were entered in the account: so that what leaves the account is
// what was entered, on the same device, whatever is current when the program frees it. Thread-safe.
#pragma once

#include <cuda.h>

#include "allocator/base/units.hpp"

namespace vramd::shim {

struct NativeBlock {
  CUdeviceptr base = 0;
  Bytes size;
  int device = -1;
  const void* context = nullptr;
  std::uint64_t id = 0;  // rises with every block; set by remember_native()
};

// False when the host has no memory for the note: the block then stays in the account for the rest of the process.
bool remember_native(NativeBlock block);
// Takes a block out of the notes; false when it is not in them.
bool forget_native(CUdeviceptr base, NativeBlock& block);
// Takes one block of a context out of the notes, not younger than `last`; false when there is none.
bool forget_native_of(const void* context, std::uint64_t last, NativeBlock& block);
std::uint64_t last_native_id();

}  // namespace vramd::shim
