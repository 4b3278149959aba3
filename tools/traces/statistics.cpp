#include "tools/traces/statistics.hpp"

#include <algorithm>

namespace vramd::traces {
namespace {

constexpr std::uint64_t kPresent = UINT64_MAX;

void line(std::string& text, const char* name, std::uint64_t value) {
  text += name;
  text += ' ' + std::to_string(value) + '\n';
}

}  // namespace

void Statistics::add(const Event& event) {
  ++counts_[static_cast<std::size_t>(event.op)];
  microseconds_ = event.microseconds;
  if (makes_live(event.op)) {
    const bool present = event.op == Op::present;
    born_.push_back(present ? kPresent : ++clock_);
    live_.add(event.size);
    streams_.insert(event.stream);
    if (present) return;
    allocated_bytes_ += event.size;
    sizes_.insert(event.size);
  } else if (event.op == Op::release) {
    ++clock_;
    live_.remove(event.id);
    if (born_[event.id] != kPresent) life_spans_.push_back(clock_ - born_[event.id]);
  }
}

std::uint64_t Statistics::released_within(std::uint64_t events) const {
  return static_cast<std::uint64_t>(
      std::count_if(life_spans_.begin(), life_spans_.end(), [&](std::uint64_t span) { return span <= events; }));
}

std::uint64_t Statistics::lived_beyond(std::uint64_t events) const {
  std::uint64_t count = life_spans_.size() - released_within(events);
  for (std::uint64_t id = 0; id < born_.size(); ++id) {
    count += born_[id] != kPresent && live_.size_of(id) != 0 && clock_ - born_[id] > events;
  }
  return count;
}

std::string Statistics::text() const {
  std::string text;
  line(text, "present", count(Op::present));
  line(text, "allocations", count(Op::allocate));
  line(text, "frees", count(Op::release));
  line(text, "reservation-events", count(Op::grew) + count(Op::shrank));
  line(text, "markers", count(Op::marker));
  line(text, "streams", streams());
  line(text, "microseconds", microseconds());
  line(text, "live-peak-bytes", live_.peak_bytes());
  line(text, "live-end-bytes", live_.live_bytes());
  line(text, "live-end-blocks", live_.live_count());
  line(text, "allocated-bytes", allocated_bytes());
  line(text, "distinct-sizes", distinct_sizes());
  line(text, "freed-within-10-events", released_within(10));
  line(text, "lived-over-1000-events", lived_beyond(1000));
  return text;
}

}  // namespace vramd::traces
