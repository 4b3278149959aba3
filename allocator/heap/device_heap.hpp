// The heap of one device in one process: blocks on segments, segments on chunks of a ChunkSource.
//
// Thread-safe. The lock guards bookkeeping only and is never held across a driver call or a call of the source. Growth has
// a lock of its own, which only threads take that found nothing free: one gathers chunks at a time, or two that want most of
// the device would each end with half of it.
//
// Freed memory: free is two steps. begin_free() takes the block from the program, finish_free() makes it reusable. Between
// the two the caller proves that the GPU is done with it (today: by synchronising the block's context, as cuMemFree may);
// where it cannot, undo_free() gives the block back to the program. Blocks are named by their ids: an address may mean
// another block by then.
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <new>
#include <optional>

#include "allocator/base/clock.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/node_pool.hpp"
#include "allocator/heap/chunk_array.hpp"
#include "allocator/heap/placement.hpp"
#include "allocator/vmm/mapping.hpp"

namespace vramd::heap {

struct Config {
  Bytes keep_idle = 256_MiB;  // wholly free segments up to here stay mapped; beyond it the oldest goes back to the source
};

// What the program may know of one of its blocks.
struct BlockInfo {
  DevicePtr base{};
  Bytes size;  // as requested
  std::uint64_t id = 0;
  const void* context = nullptr;
};

template <ChunkSource Source>
class DeviceHeap {
 public:
  DeviceHeap(const Driver& driver, int device, Source& source, Config config = {})
      : driver_(driver), source_(source), device_(device), config_(config), access_(AccessMask{1} << device) {}
  DeviceHeap(const DeviceHeap&) = delete;
  DeviceHeap& operator=(const DeviceHeap&) = delete;

  // A block of at least `requested` bytes (> 0). Errors: out_of_memory and over_limit after everything idle was given
  // back and more tries; others as the driver or the source reports them. On error nothing has changed.
  Result<DevicePtr> allocate(Bytes requested, const void* context) {
    if (Placement::rounded(requested) == Bytes{0}) return failure(ErrorCode::out_of_memory, "allocate: size");
    if (auto block = take(requested, context)) return *block;
    MutexLock growing(grow_mutex_);
    if (auto block = take(requested, context)) return *block;  // another thread has grown or freed meanwhile
    bool gathered = false;
    auto block = grow(requested, context, gathered);
    if (block || !is_shortage(block.error())) return block;
    if (give_back_idle({})) block = grow(requested, context, gathered = false);
    // Some chunks were there and not enough. If another process is at the same, each holds what the other lacks; both give
    // theirs back, and the one that waits less gets all.
    for (int turn = 0; turn < kTurns && gathered && !block && block.error().code == ErrorCode::out_of_memory; ++turn) {
      wait_a_turn(turn);
      if (source_.available(device_) >= segment_size(requested, false)) block = grow(requested, context, gathered);
    }
    return block;
  }

  enum class Owned : std::uint8_t {
    no,        // not an address of this heap
    block,     // in a live block
    not_live,  // of this heap, but freed or never handed out
  };

  // Tells whose address `p` is and, for Owned::block, the block's data (also for interior addresses).
  Owned find(DevicePtr p, BlockInfo* info = nullptr) const {
    MutexLock lock(mutex_);
    const Range* range = placement_.find(p);
    if (range == nullptr) return Owned::no;
    if (range->state != RangeState::live || p >= range->base + range->requested) return Owned::not_live;
    if (info != nullptr) *info = {range->base, range->requested, range->id, range->context};
    return Owned::block;
  }

  // Takes the live block that begins exactly at `base` from the program. Anything else: Owned::no or Owned::not_live.
  Owned begin_free(DevicePtr base, BlockInfo* info) {
    MutexLock lock(mutex_);
    Range* range = placement_.find(base);
    if (range == nullptr) return Owned::no;
    if (range->state != RangeState::live || range->base != base) return Owned::not_live;
    *info = {range->base, range->requested, range->id, range->context};
    placement_.to_limbo(*range);
    return Owned::block;
  }

  // Makes a block from begin_free() reusable; idle segments beyond Config::keep_idle go back to the source.
  void finish_free(const BlockInfo& block) {
    {
      MutexLock lock(mutex_);
      Range* range = in_limbo(block);
      if (range == nullptr || placement_.release(*range) == nullptr) return;
      show_idle();
    }
    give_back_idle(config_.keep_idle);
  }

  // Makes a block from begin_free() live again.
  void undo_free(const BlockInfo& block) {
    MutexLock lock(mutex_);
    if (Range* range = in_limbo(block)) placement_.to_live(*range);
  }

  // Gives idle segments back, the longest idle first, until at most `keep` bytes of them are left. True when any went.
  bool give_back_idle(Bytes keep) {
    bool any = false;
    for (;;) {
      MappedSegment* segment;
      {
        MutexLock lock(mutex_);
        if (placement_.totals().idle <= keep) return any;
        segment = static_cast<MappedSegment*>(placement_.oldest_idle());
        if (segment == nullptr) return any;
        placement_.remove_segment(*segment);
        show_idle();
      }
      tear_down(segment);
      any = true;
    }
  }

  // The id of the youngest block so far.
  std::uint64_t last_id() const {
    MutexLock lock(mutex_);
    return placement_.last_id();
  }

  // Frees the blocks of a context that is gone: no work of it can be in flight. Only those up to `last`, which the caller
  // asked for before the context went: a new context may have got the same handle since.
  void drop_context(const void* context, std::uint64_t last) {
    {
      MutexLock lock(mutex_);
      placement_.release_all_of(context, last);
      show_idle();
    }
    give_back_idle(config_.keep_idle);
  }

  // Lets another device reach all present and future blocks, or takes that right away. On error the rest has still been
  // done; a range that kept its old access is not tried again.
  Result<void> set_peer(int peer, bool allowed) {
    const AccessMask bit = AccessMask{1} << peer;
    {
      MutexLock lock(mutex_);
      access_ = allowed ? access_ | bit : access_ & ~bit;
    }
    Result<void> result;
    for (;;) {
      MappedSegment* segment = nullptr;
      AccessMask target = 0;
      {
        MutexLock lock(mutex_);
        target = access_;
        for (Segment* each = placement_.segments(); each != nullptr && segment == nullptr; each = each->next) {
          auto* candidate = static_cast<MappedSegment*>(each);
          if (!candidate->pinned && candidate->access != target) segment = candidate;
        }
        if (segment == nullptr) break;
        segment->pinned = true;  // by this thread alone: whoever else changes the access leaves this segment to us
      }
      if (auto done = change_access(*segment, target); !done && result) result = done;
      MutexLock lock(mutex_);
      segment->access = target;
      segment->pinned = false;
    }
    give_back_idle(config_.keep_idle);
    return result;
  }

  Totals totals() const {
    MutexLock lock(mutex_);
    return placement_.totals();
  }
  bool consistent() const {
    MutexLock lock(mutex_);
    return placement_.consistent();
  }
  int device() const { return device_; }

 private:
  static constexpr int kTurns = 4;

  // A segment with what backs it: chunks in address order.
  struct MappedSegment : Segment {
    Reservation reservation;
    ChunkArray chunks;
    AccessMask access = 0;  // as granted
  };

  // 1, 2, 4, ... ms, each longer by up to as much again. By number: libc's nanosleep() is a cancellation point.
  static void wait_a_turn(int turn) {
    const std::int64_t least = 1'000'000ll << turn;
    const std::int64_t more = (MonotonicClock{}.now().value ^ ::getpid() * 0x9e3779b1ll) % least;
    const timespec time{0, least + (more < 0 ? -more : more)};
    (void)::syscall(SYS_nanosleep, &time, nullptr);
  }

  std::optional<DevicePtr> take(Bytes requested, const void* context) {
    MutexLock lock(mutex_);
    const Range* block = placement_.take(requested, context);
    show_idle();
    return block == nullptr ? std::nullopt : std::optional(block->base);
  }

  // Tells a source that wants to know, with the lock held: what is idle can be had by give_back_idle().
  void show_idle() {
    if constexpr (requires { source_.show_idle(device_, Bytes{}); }) {
      const Bytes idle = placement_.totals().idle;
      if (idle == shown_idle_) return;
      shown_idle_ = idle;
      source_.show_idle(device_, idle);
    }
  }

  // With the lock held.
  Range* in_limbo(const BlockInfo& block) {
    Range* range = placement_.find(block.base);
    return range != nullptr && range->id == block.id && range->state == RangeState::limbo ? range : nullptr;
  }

  static bool is_shortage(const Error& error) {
    return error.code == ErrorCode::out_of_memory || error.code == ErrorCode::over_limit;
  }

  // Size of the segment for a request: small requests share one small chunk. A large one below a large chunk takes a whole
  // large chunk when `generous`, so that several find room in it.
  static Bytes segment_size(Bytes requested, bool generous) {
    if (requested <= kSmallLimit) return kSmallChunk;
    const Bytes size = Placement::rounded(requested);
    return generous && size < kLargeChunk ? kLargeChunk : size;
  }

  // `gathered` becomes true when chunks had been there before the shortage.
  Result<DevicePtr> grow(Bytes requested, const void* context, bool& gathered) {
    auto block = grow_by(segment_size(requested, true), requested, context, gathered);
    const Bytes exact = segment_size(requested, false);
    if (block || !is_shortage(block.error()) || exact == segment_size(requested, true)) return block;
    return grow_by(exact, requested, context, gathered);
  }

  Result<DevicePtr> grow_by(Bytes size, Bytes requested, const void* context, bool& gathered) {
    auto built = build(size, requested <= kSmallLimit, gathered);
    if (!built) return tl::unexpected(built.error());
    MappedSegment* segment = *built;
    for (;;) {
      AccessMask target;
      {
        MutexLock lock(mutex_);
        target = access_;
        if (segment->access == target) {
          if (!placement_.add_segment(*segment)) break;
          if (Range* block = placement_.take_from(*segment, requested, context)) return block->base;
          placement_.remove_segment(*segment);
          break;
        }
      }
      // set_peer() came in between. It does not see this segment yet, so the change is ours to make.
      if (auto done = change_access(*segment, target); !done) {
        tear_down(segment);
        return tl::unexpected(done.error());
      }
      segment->access = target;
    }
    tear_down(segment);
    return failure(ErrorCode::out_of_memory, "host memory for bookkeeping");
  }

  Result<void> change_access(const MappedSegment& segment, AccessMask target) {
    const AccessMask granted = target & ~segment.access;
    const AccessMask revoked = segment.access & ~target;
    if (granted != 0) {
      if (auto done = set_access(driver_, segment.base, segment.size, granted); !done) return done;
    }
    if (revoked == 0) return {};
    return set_access(driver_, segment.base, segment.size, revoked, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  }

  // A mapped segment that is not yet in the placement; all or nothing.
  Result<MappedSegment*> build(Bytes size, bool small, bool& gathered) {
    MappedSegment* segment;
    AccessMask access;
    {
      MutexLock lock(mutex_);
      segment = segment_nodes_.create();
      access = access_;
    }
    if (segment == nullptr) return failure(ErrorCode::out_of_memory, "host memory for bookkeeping");
    std::size_t mapped = 0;
    auto filled = fill(*segment, size, access, mapped);
    segment->base = segment->reservation.base();
    if (!filled) {
      gathered = gathered || segment->chunks.size() != 0;
      tear_down(segment, mapped);
      return tl::unexpected(filled.error());
    }
    segment->size = size;
    segment->small = small;
    segment->access = access;
    return segment;
  }

  // `mapped`: how many of its chunks are mapped, also after a failure.
  Result<void> fill(MappedSegment& segment, Bytes size, AccessMask access, std::size_t& mapped) {
    for (Bytes left = size; left > Bytes{0};) {
      const Bytes wanted = left >= kLargeChunk ? kLargeChunk : kSmallChunk;
      if (!segment.chunks.has_room()) return failure(ErrorCode::out_of_memory, "host memory for bookkeeping");
      auto chunk = source_.acquire(device_, wanted);
      if (!chunk) return tl::unexpected(chunk.error());
      segment.chunks.push_back(*chunk);
      left -= chunk->size;
    }
    auto reserved = Reservation::reserve(driver_, size);
    if (!reserved) return tl::unexpected(reserved.error());
    segment.reservation = std::move(*reserved);
    return map_chunks(driver_, segment.reservation.base(), segment.chunks.data(), segment.chunks.size(), access, mapped);
  }

  void tear_down(MappedSegment* segment) { tear_down(segment, segment->chunks.size()); }

  // Unmaps the first `mapped` chunks of a segment that the placement doesn't know and gives all its chunks back. A chunk that
  // the driver refuses to unmap stays where it is, with its address space, for the rest of the process: it must not reach
  // anybody else.
  void tear_down(MappedSegment* segment, std::size_t mapped) {
    DevicePtr at = segment->base;
    const Chunk* chunks = segment->chunks.data();
    const std::size_t count = segment->chunks.size();
    std::size_t from = 0;  // unmapped from here on and not yet given back
    for (std::size_t i = 0; i < mapped; ++i) {
      if (!unmap_chunk(driver_, at, chunks[i])) {
        segment->reservation.leak();
        source_.give_back(device_, chunks + from, i - from);
        from = i + 1;
      }
      at = at + chunks[i].size;
    }
    source_.give_back(device_, chunks + from, count - from);
    destroy(segment);
  }

  void destroy(MappedSegment* segment) {
    Reservation address_space = std::move(segment->reservation);  // freed after the lock: a driver call
    MutexLock lock(mutex_);
    segment_nodes_.destroy(segment);
  }

  const Driver& driver_;
  Source& source_;
  const int device_;
  const Config config_;
  Mutex grow_mutex_;     // taken before mutex_
  mutable Mutex mutex_;  // guards everything below
  Placement placement_;
  NodePool<MappedSegment> segment_nodes_;
  Bytes shown_idle_;
  AccessMask access_;  // who may reach the blocks: wanted, and reached by every segment that is not pinned
};

}  // namespace vramd::heap
