// What generators write on: blocks that are released by name, or by themselves after some events. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "tools/traces/event.hpp"

namespace vramd::traces {

class Tape {
 public:
  struct Block {
    std::uint64_t id = 0, size = 0;
    std::uint32_t stream = 0;
  };

  Tape(std::uint64_t seed, const std::function<void(const Event&)>& sink) : random_(seed), sink_(sink) {}

  Block present(std::uint64_t size) {
    const Block block{next_id_++, size, 0};
    sink_({Op::present, block.id, size, 0, 0});
    return block;
  }

  Block allocate(std::uint64_t size, std::uint32_t stream = 0) {
    const Block block{next_id_++, size, stream};
    emit(Op::allocate, block);
    return block;
  }

  void release(Block block) { emit(Op::release, block); }

  // A block that is released `events` allocator events after its allocation (a little later when others are
  // due first).
  void passing(std::uint64_t size, std::uint64_t events, std::uint32_t stream = 0) {
    const Block block = allocate(size, stream);
    due_.push_back({clock_ + events, block});
  }

  void release_all(std::vector<Block>& blocks) {
    for (const Block& block : blocks) release(block);
    blocks.clear();
  }

  // Releases every passing block now, as a synchronising program would.
  void settle() {
    while (!due_.empty()) release_due(due_.size() - 1);
  }

  // Uniform in [low, high]. Not std::uniform_int_distribution: its results differ between libraries.
  std::uint64_t draw(std::uint64_t low, std::uint64_t high) { return low + random_() % (high - low + 1); }

 private:
  struct Due {
    std::uint64_t at;
    Block block;
  };

  void emit(Op op, Block block) {
    ++clock_;
    if (clock_ > 1) microseconds_ += draw(10, 50);
    sink_({op, block.id, block.size, block.stream, microseconds_});
    for (std::size_t i = 0; i < due_.size(); ++i) {
      if (due_[i].at <= clock_) return release_due(i);
    }
  }

  void release_due(std::size_t index) {
    const Block block = due_[index].block;
    due_.erase(due_.begin() + static_cast<std::ptrdiff_t>(index));
    emit(Op::release, block);
  }

  std::mt19937_64 random_;
  const std::function<void(const Event&)>& sink_;
  std::vector<Due> due_;
  std::uint64_t next_id_ = 0, clock_ = 0, microseconds_ = 0;
};

}  // namespace vramd::traces
