// The device memory of this process as vramd manages it: one heap per device over one chunk source.
#pragma once

#include "allocator/heap/device_heap.hpp"
#include "shim/client/chunk_source.hpp"

namespace vramd::shim {

using Heap = heap::DeviceHeap<ChunkSourceOfProcess>;

class Memory {
 public:
  // The memory of this process; nullptr when calls go straight to the driver: before cuInit, in a forked child, in our own
  // calls, with mode off, or when vramd cannot work here. In mode observe heap() is always nullptr.
  static Memory* active();

  // Call after a successful cuInit. The first call connects and decides; it may block for Connection::kDeadline.
  static void start();

  Memory(const Driver& driver, const Settings& settings);

  const Driver& driver() const { return driver_; }
  ChunkSourceOfProcess& source() { return source_; }

  // nullptr when allocations of this device are native.
  Heap* heap(int device) { return device >= 0 && device < device_count_ ? heaps_[device] : nullptr; }
  int device_count() const { return device_count_; }

  // The heap whose address `p` is, and what it knows of it. Heap::Owned::no with nullptr when none has it.
  Heap* owner(DevicePtr p, Heap::Owned& owned, heap::BlockInfo& block);

  // The device of the current context, or -1: then the driver's own error is the right answer.
  int current_device() const;

  // Waits for all work of the block's context. Afterwards nothing of it can reach the block.
  Result<void> synchronize(const void* context) const;

  // The end of a context takes two calls, since another context may get its handle as soon as it is gone.
  struct Youngest {
    std::uint64_t block[kMaxDevices];
    std::uint64_t native;
  };
  Youngest youngest() const;
  // After the end (its work is over): its blocks are gone, as natively. `last` was asked for before.
  void drop_context(const void* context, const Youngest& last);

 private:
  static void at_exit(void*);
  // In the line's thread: gives back what is idle when the daemon asks, or when nobody has allocated for long.
  static void recall(void* memory, const protocol::Recall& recall);
  static void tick(void* memory);
  bool prepare(protocol::Mode mode);
  bool device_has_vmm(int device) const;

  const Driver& driver_;
  ChunkSourceOfProcess source_;
  int device_count_ = 0;
  Heap* heaps_[kMaxDevices] = {};
  // At the last ticks: the youngest block, and for how many ticks it has been that one.
  std::uint64_t youngest_at_tick_[kMaxDevices] = {};
  int quiet_ticks_[kMaxDevices] = {};
};

// The CUresult that a program gets for an error of a driver call that we made for it.
CUresult to_result(const Error& error);

// An address that is surely no device memory. The driver's answer about it is its answer about freed memory.
CUdeviceptr no_device_address();

}  // namespace vramd::shim
