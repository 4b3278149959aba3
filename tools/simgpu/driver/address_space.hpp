// What lies where in the program's address space, as the driver knows it: reservations, ranges of memory with
// their rights, and which ranges a worker touches at this moment. Not thread-safe: callers hold
// memory_mutex(). Functions that take the lock may wait, releasing it.
#pragma once

#include <cuda.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "tools/simgpu/driver/chunk_table.hpp"

namespace simgpu {

class Context;
class Slab;
class Stream;
using StreamRef = std::shared_ptr<Stream>;
struct Pool;

enum class RangeKind {
  device,      // cuMemAlloc with a chunk of its own
  slab_block,  // cuMemAlloc out of a slab
  mapping,     // cuMemMap
  ipc,         // opened legacy IPC handle
  pinned,      // cuMemHostAlloc
  registered,  // cuMemHostRegister
  managed,
};

constexpr int kHostAccess = kMaxDevices;
using AccessTable = std::array<std::uint8_t, kMaxDevices + 1>;  // CUmemAccess_flags per device ordinal, then the host

// Of managed memory: -1 is the host, as in the driver; -2 says that nothing was asked for.
struct Managed {
  int preferred = -2, prefetched = -2;
  bool read_mostly = false;
  std::uint64_t accessed_by = 0;  // a bit per device
  int charged_to = -1;            // the device whose memory it takes now
  std::uint64_t charged = 0;      // bytes
};

struct Range {
  std::uintptr_t base = 0;
  std::size_t size = 0;  // as requested
  RangeKind kind = RangeKind::device;
  int device = -1;              // ordinal; of the context for host memory
  std::uint64_t buffer_id = 0;  // rises, never reused
  Context* context = nullptr;   // nullptr for mappings
  unsigned flags = 0;
  bool sync_memops = false;
  bool freeing = false;  // a cuMemFreeAsync is on its way
  Chunk* chunk = nullptr;
  Slab* slab = nullptr;
  Pool* pool = nullptr;
  std::uint32_t opens = 0;  // of an IPC range
  AccessTable access{};     // of a mapping
  Managed managed;

  std::uintptr_t end() const { return base + size; }
  bool on_host() const {
    return kind == RangeKind::pinned || kind == RangeKind::registered ||
           (kind == RangeKind::mapping && chunk->info.place == kHostPlace);
  }
};

// A span that a worker reads or writes now. Lives on the worker's stack.
struct Touch {
  std::uintptr_t begin = 0, end = 0;
  bool write = false;
  bool device_typed = false;  // must lie in memory that the driver knows
};
struct Busy {
  std::array<Touch, 2> touches{};
  bool torn = false;  // somebody took the memory away meanwhile
};

// A chunk as it is mapped into the process: what is opened and closed to the processor as a whole (guard.hpp).
struct Area {
  std::uintptr_t base = 0;
  std::size_t size = 0;
  int protection = 0;    // mmap's, while nobody needs it open
  unsigned users = 0;    // operations of the GPU that need it open
  unsigned writers = 0;  // of these, to write
};

class AddressSpace {
 public:
  // Reserves address space without memory behind it. 0 when there is none.
  std::uintptr_t reserve(std::size_t size, std::size_t alignment, std::uintptr_t hint);
  bool release(std::uintptr_t base, std::size_t size);

  Range& add(const Range& range);  // sets buffer_id
  void remove(std::uintptr_t base) { ranges_.erase(base); }
  // The range that contains the address, or nullptr. find_base() wants its first byte.
  Range* find(std::uintptr_t address);
  Range* find_base(std::uintptr_t base);
  Range* first_overlap(std::uintptr_t begin, std::uintptr_t end);
  bool reserved(std::uintptr_t begin, std::uintptr_t end) const;
  std::map<std::uintptr_t, Range>& ranges() { return ranges_; }

  // Puts a reservation without memory or access over the range again.
  static bool blank(std::uintptr_t base, std::size_t size);

  // Areas. `protection` is what the processor may do while the GPU doesn't use the memory.
  bool add_area(std::uintptr_t base, std::size_t size, int protection);
  bool set_protection(std::uintptr_t base, int protection);
  void remove_area(std::uintptr_t base);
  const Area* find_area(std::uintptr_t address);
  // Counted. open() is false when the kernel refuses; close() of an area that is gone does nothing.
  bool open(std::uintptr_t base, bool write);
  void close(std::uintptr_t base, bool write);
  void open_span(std::uintptr_t begin, std::uintptr_t end, bool write);
  void close_span(std::uintptr_t begin, std::uintptr_t end, bool write);

  // Whether a device may touch the whole span now.
  bool permitted(const Touch& touch, int device);

  // Checks both touches for the device and marks them busy. False: the device faults, nothing is marked.
  bool begin_touching(Busy& busy, int device);
  // False when the memory was taken away in between.
  bool end_touching(Busy& busy);
  // Waits until no worker touches the span. A worker that does makes this a misuse: the GPU would have
  // faulted.
  void wait_untouched(std::unique_lock<std::mutex>& lock, std::uintptr_t begin, std::uintptr_t end, const char* call);

 private:
  std::map<std::uintptr_t, Range> ranges_;
  std::map<std::uintptr_t, std::size_t> reservations_;
  std::map<std::uintptr_t, Area> areas_;
  std::vector<Busy*> busy_;
  std::condition_variable untouched_;
  std::uint64_t next_buffer_id_ = 1;
};

// One lock for all tables about memory: chunks, address space, slabs, pools. Never held while a stream is
// waited for.
std::mutex& memory_mutex();
AddressSpace& address_space();

}  // namespace simgpu
