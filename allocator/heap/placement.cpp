#include "allocator/heap/placement.hpp"

namespace vramd::heap {

Range* Placement::take(Bytes requested, const void* context) {
  const Bytes size = rounded(requested);
  SizeSet& set = requested <= kSmallLimit ? free_small_ : free_large_;
  Range* fit = set.first_not([size](const Range& range) { return range.size < size; });
  return fit == nullptr ? nullptr : carve(*fit, size, requested, context);
}

Range* Placement::take_from(Segment& segment, Bytes requested, const void* context) {
  return carve(*segment.first, rounded(requested), requested, context);
}

Range* Placement::carve(Range& range, Bytes size, Bytes requested, const void* context) {
  Segment& segment = *range.segment;
  Range* rest = nullptr;
  if (range.size > size) {
    rest = ranges_.create();
    if (rest == nullptr) return nullptr;
  }
  free_set(segment).erase(range);
  if (segment.idle_since != 0) {
    segment.idle_since = 0;
    totals_.idle -= segment.size;
  }
  if (rest != nullptr) {
    rest->base = range.base + size;
    rest->size = range.size - size;
    rest->segment = &segment;
    rest->previous = &range;
    rest->next = range.next;
    if (range.next != nullptr) range.next->previous = rest;
    range.next = rest;
    range.size = size;
    by_address_.insert(*rest);
    free_set(segment).insert(*rest);
  }
  range.state = RangeState::live;
  range.requested = requested;
  range.context = context;
  range.id = next_id_++;
  totals_.free -= size;
  totals_.live += requested;
  ++totals_.blocks;
  return &range;
}

bool Placement::add_segment(Segment& segment) {
  Range* range = ranges_.create();
  if (range == nullptr) return false;
  range->base = segment.base;
  range->size = segment.size;
  range->segment = &segment;
  segment.first = range;
  segment.previous = nullptr;
  segment.next = segments_;
  if (segments_ != nullptr) segments_->previous = &segment;
  segments_ = &segment;
  by_address_.insert(*range);
  free_set(segment).insert(*range);
  segment.idle_since = ++idle_clock_;
  totals_.mapped += segment.size;
  totals_.free += segment.size;
  totals_.idle += segment.size;
  return true;
}

void Placement::remove_segment(Segment& segment) {
  Range* range = segment.first;
  free_set(segment).erase(*range);
  by_address_.erase(*range);
  ranges_.destroy(range);
  (segment.previous != nullptr ? segment.previous->next : segments_) = segment.next;
  if (segment.next != nullptr) segment.next->previous = segment.previous;
  segment.first = nullptr;
  totals_.mapped -= segment.size;
  totals_.free -= segment.size;
  totals_.idle -= segment.size;
}

Range* Placement::find(DevicePtr p) const {
  Range* range = by_address_.last([p](const Range& r) { return r.base <= p; });
  return range != nullptr && p < range->base + range->size ? range : nullptr;
}

void Placement::to_limbo(Range& block) {
  block.state = RangeState::limbo;
  totals_.live -= block.requested;
  totals_.limbo += block.size;
  --totals_.blocks;
}

void Placement::to_live(Range& block) {
  block.state = RangeState::live;
  totals_.live += block.requested;
  totals_.limbo -= block.size;
  ++totals_.blocks;
}

// `range` grows by its right neighbour, which disappears. Neither is in a free set at this moment.
void Placement::absorb_next(Range& range) {
  Range* gone = range.next;
  range.size += gone->size;
  range.next = gone->next;
  if (gone->next != nullptr) gone->next->previous = &range;
  by_address_.erase(*gone);
  ranges_.destroy(gone);
}

Segment* Placement::release(Range& block) {
  if (block.state == RangeState::live) to_limbo(block);
  totals_.limbo -= block.size;
  totals_.free += block.size;
  block.state = RangeState::free;
  block.requested = {};
  block.context = nullptr;
  block.id = 0;
  Range* range = &block;
  Segment& segment = *block.segment;
  if (range->next != nullptr && range->next->state == RangeState::free) {
    free_set(segment).erase(*range->next);
    absorb_next(*range);
  }
  if (range->previous != nullptr && range->previous->state == RangeState::free) {
    range = range->previous;
    free_set(segment).erase(*range);
    absorb_next(*range);
  }
  free_set(segment).insert(*range);
  if (range->size != segment.size) return nullptr;
  segment.idle_since = ++idle_clock_;
  totals_.idle += segment.size;
  return &segment;
}

Segment* Placement::oldest_idle() const {
  Segment* oldest = nullptr;
  for (Segment* segment = segments_; segment != nullptr; segment = segment->next) {
    if (segment->idle_since == 0 || segment->pinned) continue;
    if (oldest == nullptr || segment->idle_since < oldest->idle_since) oldest = segment;
  }
  return oldest;
}

void Placement::release_all_of(const void* context, std::uint64_t last) {
  for (Segment* segment = segments_; segment != nullptr; segment = segment->next) {
    for (Range* range = segment->first; range != nullptr;) {
      if (range->state == RangeState::free || range->context != context || range->id > last) {
        range = range->next;
        continue;
      }
      Range* before = range->previous;
      Range* merged = before != nullptr && before->state == RangeState::free ? before : range;
      release(*range);
      range = merged->next;
    }
  }
}

bool Placement::consistent() const {
  Totals seen;
  for (const Segment* segment = segments_; segment != nullptr; segment = segment->next) {
    seen.mapped += segment->size;
    DevicePtr at = segment->base;
    const Range* previous = nullptr;
    for (const Range* range = segment->first; range != nullptr; range = range->next) {
      if (range->segment != segment || range->previous != previous || range->base != at) return false;
      if (range->size == Bytes{0} || find(range->base) != range) return false;
      const SizeSet& set = segment->small ? free_small_ : free_large_;
      const Range* in_set = set.first_not([range](const Range& other) { return BySize::less(other, *range); });
      if ((in_set == range) != (range->state == RangeState::free)) return false;
      switch (range->state) {
        case RangeState::free:
          if (previous != nullptr && previous->state == RangeState::free) return false;  // must have been merged
          seen.free += range->size;
          if (range->size == segment->size) seen.idle += range->size;
          break;
        case RangeState::live:
          if (range->requested > range->size) return false;
          seen.live += range->requested;
          ++seen.blocks;
          break;
        case RangeState::limbo: seen.limbo += range->size; break;
      }
      at = at + range->size;
      previous = range;
    }
    if (at != segment->base + segment->size) return false;
    if ((segment->idle_since != 0) != (segment->first->state == RangeState::free && segment->first->next == nullptr))
      return false;
  }
  return seen.mapped == totals_.mapped && seen.live == totals_.live && seen.limbo == totals_.limbo &&
         seen.free == totals_.free && seen.idle == totals_.idle && seen.blocks == totals_.blocks;
}

}  // namespace vramd::heap
