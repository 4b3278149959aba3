// Copies and memsets of all shapes. What each form promises to the host:
//   synchronous, one operand on the host   returns when done
//   synchronous, device to device, memset  returns at once (memset of host memory: when done)
//   Async, host to host                    returns when done
//   Async, pageable to device              returns when the source is read: it is copied at submission, after
//   earlier work
//                                          of the stream that may write host memory
//   Async, device to pageable              returns when done
//   Async, everything else                 returns at once; pinned memory is read and written when the stream
//   gets there
// In a capture nothing is waited for or staged; the graph reads its operands at each launch.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace simgpu {

// One operand: rows of `width` bytes, `pitch` apart, in slices `slice` apart.
struct CopySide {
  std::uintptr_t address = 0;
  std::size_t pitch = 0, slice = 0;
  bool device_typed = false;  // the program says it is device memory: unknown addresses are refused
};

struct CopyRequest {
  CopySide destination, source;
  std::size_t width = 0, height = 1, depth = 1;
  CUstream stream = nullptr;
  bool synchronous = false;
};
CUresult copy(const CopyRequest& request);

struct FillRequest {
  std::uintptr_t address = 0;
  std::size_t pitch = 0;
  std::uint32_t value = 0;
  unsigned element = 1;               // bytes: 1, 2 or 4
  std::size_t width = 0, height = 1;  // elements per row, rows
  CUstream stream = nullptr;
  bool synchronous = false;
};
CUresult fill(const FillRequest& request);

}  // namespace simgpu
