// The control file: what the processes of one simulated machine share. Every field is guarded by `mutex`, but for the engines.
// A process may die at any instruction inside the lock. So `state` of chunks, holds and slots is the truth,
// written last on creation and first on removal; lists, counts and sums are derived from it and rebuilt by
// the next locker (Control::rebuild).
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "tools/simgpu/driver/engines.hpp"

namespace simgpu {

constexpr int kMaxDevices = 8;
constexpr std::uint32_t kHostPlace = kMaxDevices;  // host memory of NUMA node 0, not charged to a device
constexpr std::uint32_t kPlaces = kMaxDevices + 1;
constexpr std::uint32_t kMaxSlots = 256;
constexpr std::uint32_t kMaxEvents = 4096;
constexpr std::uint32_t kMaxChunks = 1u << 18;
constexpr std::uint32_t kMaxHolds = 1u << 19;
constexpr std::uint64_t kGranularity = 2u << 20;
constexpr std::uint64_t kControlMagic = 0x3230'7570'676d'6973;  // "simgpu02"

enum class EntryState : std::uint32_t { free, used };

// One physical allocation: a range of the file of its place. Index 0 is "none" in this and the following
// tables.
struct ChunkEntry {
  EntryState state;
  std::uint32_t generation;  // counts the lives of this entry: tells a stale token or IPC handle
  std::uint64_t offset;
  std::uint64_t size;
  std::uint32_t place;
  std::uint32_t holders;       // derived: number of holds
  std::uint32_t handle_types;  // CUmemAllocationHandleType bits
  std::uint32_t location_type;
  std::uint32_t rdma_capable;
  std::uint32_t exported;  // a token file exists: descriptors of it hold the chunk too
  std::uint32_t next;      // derived: free list, or list of chunks held by tokens only
  std::uint32_t listed;    // derived: it is in the latter
};

// The right of one process (slot) to one chunk.
struct HoldEntry {
  EntryState state;
  std::uint32_t slot;
  std::uint32_t chunk;
  std::uint32_t next, previous;  // derived: list of the slot, or free list (next only)
};

struct SlotEntry {
  EntryState state;
  std::uint32_t first_hold;  // derived
  std::int32_t pid;          // for people who look; identity is the lock on the slot's file
  std::uint32_t padding;
  std::uint64_t context_bytes[kMaxDevices];
  std::uint32_t contexts[kMaxDevices];
  std::uint64_t managed_bytes[kMaxDevices];  // prefetched to the device
  std::atomic<std::uint32_t> running;        // operations of its streams under way; not guarded (linger.hpp)
  std::uint32_t more_padding;
};

// An event that processes share. Positions count its records; not guarded by the mutex but for `state`.
struct EventEntry {
  EntryState state;
  std::uint32_t generation;
  std::uint32_t slot;                   // of the creator
  std::atomic<std::uint32_t> recorder;  // slot of the process that recorded it last
  std::atomic<std::uint64_t> recorded, completed;
};

struct PlaceEntry {
  std::atomic<std::int64_t> engine_free_at[kDirections];  // see engines.hpp
  std::uint64_t capacity;                                 // 0 for host memory: not limited here
  std::uint64_t used;                                     // derived
  std::uint64_t next_offset;                              // offsets are never used twice: the space (2^60) outlives any test
};

struct ControlFile {
  std::uint64_t magic;  // written last by the creator
  std::uint64_t size;   // of this struct: another build of the simulator refuses the file
  std::uint64_t machine_id;
  pthread_mutex_t mutex;  // robust, process-shared
  std::uint32_t device_count;
  char profile[36];
  PlaceEntry places[kPlaces];
  std::uint32_t chunk_limit, hold_limit;  // entries from here on were never used
  std::uint32_t free_chunks, free_holds;  // derived list heads
  std::uint32_t token_only_chunks;        // derived list head
  std::uint32_t compute_mode;             // CUcomputemode
  SlotEntry slots[kMaxSlots];
  EventEntry events[kMaxEvents];
  ChunkEntry chunks[kMaxChunks];
  HoldEntry holds[kMaxHolds];
};

}  // namespace simgpu
