// Where blocks lie: segments of mapped address space, cut into ranges. Pure bookkeeping without driver, lock or clock;
// the owner serialises all calls. Best fit by size, lowest address first; free neighbours are merged at once.
#pragma once

#include <cstdint>

#include "allocator/base/node_pool.hpp"
#include "allocator/base/treap.hpp"
#include "allocator/base/units.hpp"

namespace vramd::heap {

using namespace literals;

inline constexpr Bytes kAlignment = 512_B;   // of every block; what programs see of cudaMalloc
inline constexpr Bytes kSmallLimit = 1_MiB;  // requests up to here share 2 MiB segments, larger ones never mix with them
inline constexpr Bytes kGranule = 2_MiB;     // larger requests are rounded to it

enum class RangeState : std::uint8_t {
  free,
  live,
  limbo,  // given back by the program, not yet reusable: the GPU may still be at it
};

struct Segment;

// A contiguous part of a segment. A block is a range that is not free.
struct Range {
  DevicePtr base{};
  Bytes size;                     // what it takes
  Bytes requested;                // what the program asked for; 0 when free
  std::uint64_t id = 0;           // buffer id: rises with every allocation, never reused; 0 when free
  const void* context = nullptr;  // CUcontext that was current at the allocation
  Segment* segment = nullptr;
  Range* previous = nullptr;  // neighbours in the segment, by address
  Range* next = nullptr;
  RangeState state = RangeState::free;
  TreapHook<Range> by_address;
  TreapHook<Range> by_size;  // used while free
};

// A mapped piece of address space. What backs it is the owner's business (see DeviceHeap).
struct Segment {
  DevicePtr base{};
  Bytes size;
  bool small = false;
  Range* first = nullptr;
  Segment* previous = nullptr;  // list of all segments
  Segment* next = nullptr;
  std::uint64_t idle_since = 0;  // order in which it became wholly free; 0 = in use
  bool pinned = false;           // the owner works on it outside its lock: oldest_idle() passes over it
};

struct Totals {
  Bytes mapped;              // all segments
  Bytes live;                // requested bytes of live blocks
  Bytes limbo;               // sizes of blocks in limbo
  Bytes free;                // sizes of free ranges
  Bytes idle;                // the part of `free` that is in wholly free segments
  std::uint64_t blocks = 0;  // live ones
};

class Placement {
 public:
  Placement() = default;
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  // What a request takes: rounded to kAlignment or kGranule. {0} when it does not fit 64 bits.
  static Bytes rounded(Bytes requested) { return round_up(requested, requested <= kSmallLimit ? kAlignment : kGranule); }

  // A live block for the request from what is free, or nullptr: then add_segment() first, or host memory is short.
  Range* take(Bytes requested, const void* context);
  // The same, from this segment only. The segment's first range must be free and large enough.
  Range* take_from(Segment& segment, Bytes requested, const void* context);

  // Takes over a mapped segment (base, size, small are set). False when host memory is short.
  bool add_segment(Segment& segment);
  // Forgets a wholly free segment.
  void remove_segment(Segment& segment);

  // The range that contains `p`, free ones included; nullptr when no segment does.
  Range* find(DevicePtr p) const;

  void to_limbo(Range& block);
  // Undoes to_limbo().
  void to_live(Range& block);
  // Makes a block free and merges it with its neighbours. Returns its segment when that is wholly free now.
  Segment* release(Range& block);

  // The wholly free segment that has been so the longest and is not pinned, or nullptr.
  Segment* oldest_idle() const;
  Segment* segments() const { return segments_; }
  // The id of the youngest block so far.
  std::uint64_t last_id() const { return next_id_ - 1; }
  // Makes all blocks of this context free that are not younger than `last`, those in limbo included.
  void release_all_of(const void* context, std::uint64_t last);

  const Totals& totals() const { return totals_; }
  // Walks everything and compares it with the totals and the sets. For tests: linear in the number of ranges.
  bool consistent() const;

 private:
  struct ByAddress {
    static bool less(const Range& a, const Range& b) { return a.base < b.base; }
  };
  struct BySize {
    static bool less(const Range& a, const Range& b) { return a.size != b.size ? a.size < b.size : a.base < b.base; }
  };
  using AddressSet = Treap<Range, &Range::by_address, ByAddress>;
  using SizeSet = Treap<Range, &Range::by_size, BySize>;

  SizeSet& free_set(const Segment& segment) { return segment.small ? free_small_ : free_large_; }
  Range* carve(Range& range, Bytes size, Bytes requested, const void* context);
  void absorb_next(Range& range);

  AddressSet by_address_;
  SizeSet free_small_;
  SizeSet free_large_;
  NodePool<Range> ranges_;
  Segment* segments_ = nullptr;
  Totals totals_;
  std::uint64_t next_id_ = 1;
  std::uint64_t idle_clock_ = 0;
};

}  // namespace vramd::heap
