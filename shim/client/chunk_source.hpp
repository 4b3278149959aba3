// Where this process's heaps get their chunks: from the daemon while there is one and it serves the device, else from the
// driver directly ("local"). Limits hold in both cases. A daemon that is lost, or was never there, is looked for again while
// the process asks for memory, with pauses that grow; what the process holds by then is entered in that daemon's ledger.
// Thread-safe; no lock is held across a driver call.
#pragma once

#include "allocator/base/mutex.hpp"
#include "allocator/driver/driver.hpp"
#include "allocator/vmm/chunk.hpp"
#include "shim/client/connection.hpp"
#include "shim/client/settings.hpp"

namespace vramd::shim {

inline constexpr int kMaxDevices = static_cast<int>(protocol::kMaxDevices);

// Counters for people: what happened since the start of the process.
struct SourceCounters {
  std::uint64_t granted = 0;   // chunks from the daemon
  std::uint64_t recycled = 0;  // of these: chunks that another session, or this one earlier, had given back
  std::uint64_t created = 0;   // chunks this process created itself
  std::uint64_t returned = 0;  // chunks given back, to the daemon or to the driver
};

class ChunkSourceOfProcess {
 public:
  // Between two attempts to reach a daemon.
  struct Pauses {
    Nanos first, longest;
  };

  ChunkSourceOfProcess(const Driver& driver, const Settings& settings, Pauses pauses = {seconds(1), seconds(60)})
      : driver_(driver), settings_(settings), pauses_(pauses), pause_(pauses.first) {}
  ChunkSourceOfProcess(const ChunkSourceOfProcess&) = delete;
  ChunkSourceOfProcess& operator=(const ChunkSourceOfProcess&) = delete;

  static constexpr Nanos kRetryDeadline = milliseconds(200);  // of an attempt to reach a daemon after the first

  // Who gives back what is idle when the daemon asks for it, see Line. Before introduce(). `recalled()` is to be called when a
  // recall is done.
  void set_line_work(const Line::Work& work) { line_.set_work(work); }
  void recalled(const protocol::Recall& recall);
  // The device that the daemon means; -1 for none.
  int device_of(std::uint32_t daemon_index);
  // Shows how much of what is held nobody uses.
  void show_idle(int device, Bytes idle) {
    line_.show_idle(__atomic_load_n(&devices_[device].daemon_index, __ATOMIC_RELAXED), idle.value);
  }

  // Introduces the process to the daemon, once, before the first acquire(). Returns the mode to work in: the daemon's
  // answer, or without a daemon the environment's wish (default: pool). Logs which source each device has and why.
  protocol::Mode introduce(int device_count);

  Result<Chunk> acquire(int device, Bytes size);
  Bytes available(int device);
  void give_back(int device, const Chunk* chunks, std::size_t count);

  // Memory that the driver gives to the program itself. enter_native() before the call: it counts against the limits, and
  // false means that they forbid it. note_native() after it, for what no limit can refuse any more. leave_native() when the
  // memory is freed or was not to be had.
  bool enter_native(int device, Bytes size);
  void note_native(int device, Bytes size);
  void leave_native(int device, Bytes size);

  // What cuMemGetInfo should say; `device_free` and `device_total` are the driver's numbers, `reusable` what the heap
  // holds and the program does not use.
  void memory_info(int device, Bytes reusable, Bytes& device_free, Bytes& device_total);

  // The device's limit as known now; {UINT64_MAX} = none.
  Bytes limit(int device) const { return {__atomic_load_n(&devices_[device].limit, __ATOMIC_RELAXED)}; }

  // Whether `size` can never be had here, whatever others give back: more than the device has or the limit allows. Asks the
  // daemon again before it says so for the limit's sake, since the policy may have changed.
  bool out_of_reach(int device, Bytes size);

  // Leaves the daemon for good if every chunk has been given back. What is acquired from then on is local.
  void goodbye();

  SourceCounters counters() const;

 private:
  struct Device {
    std::uint64_t limit = UINT64_MAX;  // bytes; the smaller of the environment's and the daemon's
    std::uint64_t total = 0;           // bytes of the device
    std::uint64_t held = 0;            // bytes from acquire() and enter_native() that are out
    std::uint64_t environment_limit = UINT64_MAX;
    // Guarded by daemon_mutex_:
    std::uint32_t daemon_index = UINT32_MAX;
    protocol::Source source = protocol::Source::local;
    std::uint64_t leased = 0;   // bytes of `held` that the connected daemon has lent
    std::uint64_t outside = 0;  // bytes of `held` that it has only heard of by charges, or will at the next connection
  };

  // What the daemon may do for a device now, after an attempt to reach one if that is due.
  struct Reach {
    bool known, lends;
  };
  Reach reach(int device);

  // These are called with daemon_mutex_ held.
  void reach_daemon();
  Result<protocol::HelloReply> connect(Nanos deadline);
  void enter_all_that_is_held();
  void note_loss();
  Nanos longer(Nanos pause) const;
  template <class Message>
  void tell(const Message& message) {
    if (!connection_.connected()) return;
    connection_.post(message);
    if (!connection_.connected()) note_loss();
  }
  bool known_to_daemon(const Device& device) const { return device.daemon_index != UINT32_MAX && connection_.connected(); }
  Result<void> charge(Device& device, protocol::ChargeKind kind, std::int64_t bytes);

  Result<Chunk> acquire_from_daemon(int device, Bytes size);
  Result<protocol::GrantReply> ask_for_chunk(int device, Bytes size, Chunk& chunk, int& fd);
  Result<Chunk> acquire_local(int device, Bytes size);
  // Charges and, when that is allowed, remembers the bytes as held outside the daemon's leases.
  Result<void> account(int device, protocol::ChargeKind kind, std::int64_t bytes);
  // Tells the daemon of chunks whose handles are released: at most kMaxChunksPerMessage.
  void account_returned(int device, const Chunk* chunks, std::size_t count);
  bool within_bound(Device& device, Bytes size, std::uint64_t bound);
  void tell_of_limit(int device, Bytes size);
  // Asks the daemon for its view of the device and remembers the limit. False without a daemon that knows the device.
  bool ask_daemon(int device, protocol::MemoryInfoReply& info);

  const Driver& driver_;
  const Settings& settings_;
  const Pauses pauses_;
  Device devices_[kMaxDevices];
  int device_count_ = 0;
  Mutex daemon_mutex_;  // guards what follows: the daemon is asked by one thread at a time
  Connection connection_;
  Line line_;
  protocol::Hello hello_{};
  std::uint32_t lender_ = 0;  // counts connections: chunks of earlier ones are not this daemon's leases
  bool left_ = false;         // goodbye() was said
  Nanos connected_at_{}, next_attempt_{}, pause_;
  SourceCounters counters_;
  bool told_of_limit_ = false, told_of_loss_ = false;
};

}  // namespace vramd::shim
