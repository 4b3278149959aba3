// One GPU as the loop sees it: the pool, the actor that executes the pool's commands, and the cached
// descriptors. Owned and used by the loop thread only.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/base/unique_fd.hpp"
#include "allocator/chunks/pool.hpp"
#include "allocator/protocol/messages.hpp"
#include "daemon/actor.hpp"
#include "daemon/driver_library.hpp"
#include "daemon/stranded.hpp"
#include "policies/file/policy.hpp"

namespace vramd {

// The answer to a session's request for a chunk. `fd` is good for the time of the call only.
struct GrantAnswer {
  protocol::Status status = protocol::Status::ok;
  ChunkId chunk{};
  Bytes bytes;
  bool fresh = false;
  int fd = -1;
};

class Device {
 public:
  using Answer = std::function<void(SessionId, std::uint32_t request, const GrantAnswer&)>;

  // `fd_capacity`: how many exported descriptors may be kept open.
  Device(const Driver& driver, const DeviceFacts& facts, const policy::Policy& policy, std::size_t fd_capacity,
         DeviceActor::Post post, Answer answer);

  // Blocks until the context is there, or the device is known to do without: then it lends no chunks.
  void start();
  bool stop(Nanos deadline);

  const DeviceFacts& facts() const { return facts_; }
  bool lends() const { return actor_ != nullptr; }  // has a context and creates chunks
  void configure(const policy::Policy& policy);

  // Sessions. Ends return nothing: the chunks go their way.
  void open(SessionId session, chunks::DomainId domain, const chunks::Limits& limits);
  void set_limits(SessionId session, const chunks::Limits& limits) { pool_.set_limits(session, limits); }
  void end(SessionId session);

  // Answered through `Answer`, at once or later. The session must be open. What the device cannot back waits while others are
  // asked for what they hold idle.
  void request(SessionId session, std::uint32_t request, Bytes bytes);
  bool acknowledge(SessionId session, ChunkId chunk) { return pool_.acknowledge(session, chunk); }
  bool give_back(SessionId session, ChunkId chunk);
  // How others are asked. `recall` asks some sessions for `bytes` in all and names what it asked them in; `late` is told who
  // hasn't answered after kRecallTime.
  struct Recalls {
    std::function<std::vector<std::pair<SessionId, std::uint32_t>>(Device&, SessionId asking, Bytes bytes)> recall;
    std::function<void(SessionId)> late;
    std::function<void(Nanos, std::function<void()>)> call_after;
  };
  static constexpr Nanos kRecallTime = milliseconds(300);  // less than sessions wait for a grant
  void set_recalls(Recalls recalls) { recalls_ = std::move(recalls); }
  void recalled(SessionId session, std::uint32_t number);
  // Something has come back: who waits for memory is tried again.
  void try_waiting();

  // Gives everything idle to the driver; `done` learns how much that was.
  void trim(std::function<void(Bytes)> done);

  // `done` is called when the driver has what the charge needs: at once, or after idle chunks were given up.
  void charge(SessionId session, std::int64_t bytes, bool is_fact, std::function<void(bool accepted)> done);
  // Whether the limit allows a request of this size. A refusal is counted.
  bool question(SessionId session, std::int64_t bytes);
  Bytes limit_of(SessionId session) const;

  // Asks the driver for its free bytes; free() is that number from then on.
  void refresh(std::function<void()> done = {});
  Bytes free() const { return free_; }
  Bytes stranded() const;
  void unstrand(Bytes held) {
    if (stranded_) stranded_->unstrand(held);
  }
  const chunks::Pool& pool() const { return pool_; }
  std::size_t cached_fds() const { return fds_.size(); }

  // Whether a chunk's id is one of this device's.
  static std::size_t index_of(ChunkId chunk) { return static_cast<std::size_t>(chunk) >> kIndexShift; }

 private:
  static constexpr int kIndexShift = 48;

  // A request for a chunk until it is answered.
  struct Ask {
    SessionId session;
    std::uint32_t request;
    Bytes bytes;
    std::uint64_t turn = 0;  // when it began to wait for others; 0 = it has not
  };
  struct Recall {
    SessionId session;
    std::uint32_t number;
    std::uint64_t turn;
  };

  void apply(const chunks::Decision& decision, const Ask& ask);
  bool wait_for_others(Ask ask);
  void end_turn(std::uint64_t turn);
  void deliver(const chunks::Granted& granted, std::uint32_t request);
  void deliver_cleared(const chunks::Granted& granted, std::uint32_t request, const Result<void>& cleared);
  void deliver_as_it_is(const chunks::Granted& granted, std::uint32_t request);
  void deliver_exported(const chunks::Granted& granted, std::uint32_t request, Result<int> exported);
  void create(ChunkId chunk, const Ask& ask, bool foreign);
  void on_created(ChunkId chunk, const Ask& ask, const DeviceActor::Created& created);
  void release(chunks::Releases releases, std::function<void()> done = {});
  void observe(const Measure& measure, Bytes dirty_released = {});
  void refuse(SessionId session, std::uint32_t request, chunks::Refusal reason);

  const Driver& driver_;
  DeviceFacts facts_;
  chunks::Pool pool_;
  policy::Scrub scrub_;
  std::size_t fd_capacity_;
  DeviceActor::Post post_;
  Answer answer_;
  std::unordered_map<ChunkId, UniqueFd> fds_;
  Bytes free_;
  std::optional<Stranded> stranded_;
  Recalls recalls_;
  std::deque<Ask> waiting_;
  std::vector<Recall> unanswered_;
  std::uint64_t turns_ = 0, ended_turn_ = 0;
  std::unique_ptr<DeviceActor> actor_;  // last: its thread ends before the rest goes
};

}  // namespace vramd
