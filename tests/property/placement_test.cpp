// A random walk over Placement against a model: blocks never overlap, best fit really is the best fit, totals are exact.
#include <rapidcheck.h>

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "allocator/heap/placement.hpp"
#include "tests/support/catch.hpp"

using namespace vramd;
using namespace vramd::heap;

namespace {
struct Walk {
  Placement placement;
  std::vector<std::unique_ptr<Segment>> segments;
  std::map<std::uint64_t, Range*> live;  // base -> block
  std::vector<Range*> limbo;
  std::uint64_t next_base = 1ull << 40;
  const int context = 0;

  // The size of the smallest free range that fits, by walking everything.
  std::uint64_t best_fit(Bytes requested) const {
    std::uint64_t best = UINT64_MAX;
    const bool small = requested <= kSmallLimit;
    for (Segment* s = placement.segments(); s != nullptr; s = s->next) {
      if (s->small != small) continue;
      for (Range* r = s->first; r != nullptr; r = r->next) {
        if (r->state == RangeState::free && r->size >= Placement::rounded(requested)) best = std::min(best, r->size.value);
      }
    }
    return best;
  }

  void allocate(Bytes requested) {
    const std::uint64_t expected = best_fit(requested);
    Range* block = placement.take(requested, &context);
    if (block == nullptr) {
      RC_ASSERT(expected == UINT64_MAX);
      auto segment = std::make_unique<Segment>();
      segment->base = DevicePtr{next_base};
      segment->small = requested <= kSmallLimit;
      segment->size = segment->small ? kGranule : round_up(Placement::rounded(requested), 32_MiB);
      next_base += segment->size.value;  // adjacent on purpose: ranges must not merge across segments
      RC_ASSERT(placement.add_segment(*segment));
      block = placement.take_from(*segment, requested, &context);
      segments.push_back(std::move(segment));
    } else {
      const Bytes rest = block->next != nullptr && block->next->state == RangeState::free ? block->next->size : Bytes{0};
      RC_ASSERT((block->size + rest).value >= expected);
    }
    RC_ASSERT(block->requested == requested);
    RC_ASSERT(block->size >= requested);
    RC_ASSERT(address(block->base) % kAlignment.value == 0);
    auto after = live.lower_bound(address(block->base));
    const bool below_next = after == live.end() || address(block->base + block->size) <= after->first;
    RC_ASSERT(below_next);
    const Range* before = after == live.begin() ? nullptr : std::prev(after)->second;
    const bool above_previous = before == nullptr || before->base + before->size <= block->base;
    RC_ASSERT(above_previous);
    live[address(block->base)] = block;
  }
};
}  // namespace

TEST_CASE("Placement: random walks keep every invariant") {
  const bool ok = rc::check([] {
    Walk walk;
    const auto steps = *rc::gen::container<std::vector<std::tuple<int, std::uint32_t>>>(
        rc::gen::tuple(rc::gen::inRange(0, 10), rc::gen::arbitrary<std::uint32_t>()));
    for (auto [what, value] : steps) {
      if (what < 5) {
        walk.allocate(Bytes{1 + value % (what < 3 ? 3'000u : 70'000'000u)});
      } else if (what < 7 && !walk.live.empty()) {
        auto it = std::next(walk.live.begin(), value % walk.live.size());
        if (it->second->state == RangeState::limbo) continue;
        walk.placement.to_limbo(*it->second);
        walk.limbo.push_back(it->second);  // stays in `live` of the model: its bytes must not be handed out
      } else if (what < 9 && !walk.limbo.empty()) {
        std::swap(walk.limbo[value % walk.limbo.size()], walk.limbo.back());
        Range* block = walk.limbo.back();
        walk.limbo.pop_back();
        walk.live.erase(address(block->base));
        walk.placement.release(*block);
      } else if (Segment* idle = walk.placement.oldest_idle()) {
        walk.placement.remove_segment(*idle);
      }
      for (auto* block : walk.limbo) RC_ASSERT(block->state == RangeState::limbo);
      RC_ASSERT(walk.placement.consistent());
    }
  });
  CHECK(ok);
}
