// What a trace amounts to: counts, live bytes, life spans. One thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tools/traces/event.hpp"
#include "tools/traces/live_blocks.hpp"

namespace vramd::traces {

class Statistics {
 public:
  // Requires events as a Reader returns them.
  void add(const Event& event);

  std::uint64_t count(Op op) const { return counts_[static_cast<std::size_t>(op)]; }
  const LiveBlocks& live() const { return live_; }
  std::uint64_t allocated_bytes() const { return allocated_bytes_; }  // by 'a' only
  std::size_t distinct_sizes() const { return sizes_.size(); }        // of 'a' only
  std::size_t streams() const { return streams_.size(); }
  std::uint64_t microseconds() const { return microseconds_; }  // of the last event

  // Allocations ('a') whose release came at most `events` allocator events later.
  std::uint64_t released_within(std::uint64_t events) const;
  // Allocations ('a') that lived longer than `events`, those never released included when the trace went on
  // that long.
  std::uint64_t lived_beyond(std::uint64_t events) const;

  // The lines that `vramd-trace info` prints.
  std::string text() const;

 private:
  std::uint64_t counts_[6] = {};
  LiveBlocks live_;
  std::uint64_t allocated_bytes_ = 0, microseconds_ = 0;
  std::set<std::uint64_t> sizes_;
  std::set<std::uint32_t> streams_;
  std::uint64_t clock_ = 0;                // allocator events so far
  std::vector<std::uint64_t> born_;        // by id; kPresent for 'p'
  std::vector<std::uint64_t> life_spans_;  // of released 'a' blocks
};

}  // namespace vramd::traces
