// Which blocks of a trace are live, and the largest sum of their sizes so far. One thread.
#pragma once

#include <cstdint>
#include <vector>

namespace vramd::traces {

class LiveBlocks {
 public:
  std::uint64_t next_id() const { return sizes_.size(); }
  std::uint64_t live_bytes() const { return live_bytes_; }
  std::uint64_t peak_bytes() const { return peak_bytes_; }
  std::uint64_t live_count() const { return live_count_; }

  // 0: never allocated or already released. Sizes of blocks are never 0.
  std::uint64_t size_of(std::uint64_t id) const { return id < sizes_.size() ? sizes_[id] : 0; }

  // Adds the block next_id(). False, and nothing changes, when the sum would not fit 64 bits. Requires size >
  // 0.
  bool add(std::uint64_t size) {
    if (size > UINT64_MAX - live_bytes_) return false;
    sizes_.push_back(size);
    live_bytes_ += size;
    ++live_count_;
    if (live_bytes_ > peak_bytes_) peak_bytes_ = live_bytes_;
    return true;
  }

  // Requires size_of(id) > 0.
  void remove(std::uint64_t id) {
    live_bytes_ -= sizes_[id];
    --live_count_;
    sizes_[id] = 0;
  }

 private:
  std::vector<std::uint64_t> sizes_;
  std::uint64_t live_bytes_ = 0, peak_bytes_ = 0, live_count_ = 0;
};

}  // namespace vramd::traces
