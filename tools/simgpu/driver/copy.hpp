// Copies and memsets of all shapes. What each form promises to the host:
//   synchronous, one operand on the host   returns when done
//   synchronous, device to device, memset  returns at once (memset of host memory: when done)
//   Async, host to host                    returns when done
//   Async, pageable to device              returns when the source is read: by the copy itself when the stream is idle, else
//   taken
//                                          at submission, after earlier work of the stream that may write host memory
//   Async, device to pageable              returns when done
//   Async, everything else                 returns at once; pinned memory is read and written when the stream
//   gets there
// In a capture nothing is waited for or staged; the graph reads its operands at each launch.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tools/simgpu/driver/address_space.hpp"
#include "tools/simgpu/driver/engines.hpp"
#include "tools/simgpu/driver/work.hpp"

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
// The request that the driver's general form means. NOT_SUPPORTED for arrays.
CUresult request_of(const CUDA_MEMCPY3D& shape, CopyRequest& request);

// What an operand was when the copy was submitted.
enum class Memory { device, pinned, managed, pageable };
struct Where {
  Memory memory{};
  int device = -1;  // of device memory
};

class CopyWork : public Work {
 public:
  // Checks the operands. SUCCESS with no work when there is nothing to copy.
  static CUresult make(const CopyRequest& request, std::shared_ptr<CopyWork>& work);
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMCPY; }
  std::string label() const override;
  CUresult perform(Context& context) const override { return perform_from(context, request_.source.address, source_); }
  // With the source's bytes taken out of the program's hands before.
  CUresult perform_staged(Context& context, const void* taken) const;

  const CopyRequest& request() const { return request_; }
  Memory to() const { return to_.memory; }
  Memory from() const { return from_.memory; }
  const Touch& source() const { return source_; }

 private:
  CUresult perform_from(Context& context, std::uintptr_t source, const Touch& read) const;

  CopyRequest request_;
  Touch destination_, source_;
  Where to_{}, from_{};
};

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

class FillWork : public Work {
 public:
  static CUresult make(const FillRequest& request, std::shared_ptr<FillWork>& work);
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMSET; }
  std::string label() const override { return "fill " + std::to_string(request_.width * request_.height * request_.element); }
  CUresult perform(Context& context) const override;
  const FillRequest& request() const { return request_; }
  Memory memory() const { return where_.memory; }

 private:
  FillRequest request_;
  Touch destination_;
  Where where_{};
};

}  // namespace simgpu
