// One line of an allocation trace. README.md describes the file format.
#pragma once

#include <cstdint>

namespace vramd::traces {

enum class Op : std::uint8_t {
  present,   // 'p': already live when the recording began
  allocate,  // 'a'
  release,   // 'f'
  grew,      // 'S': the recorded allocator reserved memory; not the program's doing
  shrank,    // 's': it gave memory back
  marker,    // 'O': it ran out of memory, or the recording was cut here
};

struct Event {
  Op op = Op::allocate;
  std::uint64_t id = 0;            // dense from 0 over `present` and `allocate`, never reused
  std::uint64_t size = 0;          // bytes as the program asked for them
  std::uint32_t stream = 0;        // 0 is the first stream seen
  std::uint64_t microseconds = 0;  // host time since the first event; never runs backwards
};

constexpr bool operator==(const Event& a, const Event& b) {
  return a.op == b.op && a.id == b.id && a.size == b.size && a.stream == b.stream && a.microseconds == b.microseconds;
}

constexpr bool makes_live(Op op) { return op == Op::present || op == Op::allocate; }

}  // namespace vramd::traces
