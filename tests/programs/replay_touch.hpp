// Writes a pattern into blocks and verifies it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

struct Block {
  std::uint64_t id = 0;  // of the trace
  void* data = nullptr;  // nullptr: not live
  std::uint64_t size = 0;
  cudaStream_t stream = nullptr;  // of its allocation
};

class Toucher {
 public:
  // mode: "none"; "edges": 64 bytes at the start, at every 2 MiB and at the end; "full": everything.
  // Blocks have ids below block_count.
  Toucher(const std::string& mode, std::uint64_t block_count);
  ~Toucher();
  Toucher(const Toucher&) = delete;
  Toucher& operator=(const Toucher&) = delete;

  bool active() const { return stride_ != 0; }

  // From now on blocks carry another pattern, so that old bytes are not taken for new ones.
  void start_pass(std::uint64_t pass);

  // Enqueue on `stream`.
  void write(const Block& block, cudaStream_t stream) const;
  void check(const Block& block, cudaStream_t stream);

  // The answers of check() once its stream has come so far: the first wrong offset, or kNothingWrong.
  static constexpr std::uint64_t kNothingWrong = UINT64_MAX;
  std::uint64_t answer(std::uint64_t id, cudaStream_t stream) const;  // waits for the stream
  std::vector<std::uint64_t> answers() const;                         // of all ids; waits for the device

  // "expected 0x12, found 0x34" for an offset that is wrong.
  std::string describe(const Block& block, std::uint64_t offset) const;

  std::uint64_t verified_bytes() const { return verified_bytes_; }

 private:
  std::uint64_t tag(const Block& block) const;

  std::uint64_t stride_ = 0, length_ = 0, block_count_ = 0, pass_tag_ = 0, verified_bytes_ = 0;
  unsigned long long* first_wrong_ = nullptr;  // one per block; pinned host memory, written by kernels
};
