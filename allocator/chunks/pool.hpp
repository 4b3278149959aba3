// All chunks of one device, and who holds them. A state machine without threads, driver or clock: the owner
// calls it from one thread, executes the commands it returns in the order in which they came, and reports the
// results.
//
// Life of a chunk:
//   creating --created--> leased --give_back--> idle --request--> leased
//       |                    |                              |
//       |                    +--end, revoke--> dying --released--> gone
//       +--create_failed--> gone                     idle --convert, trim--> releasing --released--> gone
//
// Promises, each walked by check():
//   * a chunk is in exactly one state and leased to at most one session;
//   * the bytes granted are the bytes leased are the sum over all accounts, at every moment;
//   * a used chunk is granted again only inside its domain; it leaves the domain by release and create, and what is created for
//     one domain after another one's memory has gone to the driver is said to be foreign;
//   * a chunk of a session that has ended is never granted again;
//   * a request is refused for lack of memory only after every idle chunk has gone and the driver has still
//   refused.
#pragma once

#include <optional>
#include <unordered_map>

#include "allocator/chunks/idle_lists.hpp"
#include "allocator/chunks/ledger.hpp"

namespace vramd::chunks {

enum class State : std::uint8_t { creating, idle, leased, releasing, dying };

class Pool {
 public:
  struct Config {
    Bytes retain;    // idle bytes that are kept warm; more is released at once, largest class first
    Bytes headroom;  // bytes of the device that the pool leaves to the driver and to others
    std::uint32_t max_unacknowledged = 64;
    std::uint64_t first_id = 1;  // ids count up from here: pools of one daemon get disjoint ranges
  };

  explicit Pool(const Config& config) : config_(config), next_id_(config.first_id) {}

  // New values of retain and headroom; returns what is above `retain` now.
  Releases configure(Bytes retain, Bytes headroom);

  // Everything idle, to be released.
  Releases release_idle();

  // What the driver says is free, measured after the last reported command. It steers whether a request
  // converts at once or tries to create first; a wrong value costs a detour and never a refusal.
  void observe_free(Bytes driver_free);

  // Sessions. All of them but open() expect an open session.
  bool open(SessionId session, DomainId domain, const Limits& limits);
  void set_limits(SessionId session, const Limits& limits);
  // The session is over. Nothing it held is ever granted again: its process may still map it, and the driver returns the
  // bytes when it no longer does.
  Releases end(SessionId session);

  // Requests. A NeedCreate or NeedConvert is answered later with created() or create_failed(), which decide
  // again.
  Decision request(SessionId session, Bytes bytes);
  Decision created(ChunkId chunk);
  Decision create_failed(ChunkId chunk, CreateFailure why);
  void released(ChunkId chunk);

  // False or empty: the chunk is not leased to this session (or is acknowledged already).
  bool acknowledge(SessionId session, ChunkId chunk);
  // A chunk that comes back without ever having been acknowledged is released: the session could not use it.
  std::optional<Releases> give_back(SessionId session, ChunkId chunk);
  // A grant that could not be delivered: the lease ends and the chunk is released.
  std::optional<Release> revoke(SessionId session, ChunkId chunk);

  // Memory outside the pool enters (bytes > 0) or leaves the account. A fact is entered whatever the limit says.
  Charged charge(SessionId session, std::int64_t bytes, bool is_fact = false);
  // For a request that the session itself did not even make, since it is above its limit: counted as refused.
  void count_refusal() { ++counts_.over_limit; }
  // For a request that is refused in the end: one that the device couldn't back at first may be asked again.
  void count_out_of_memory() { ++counts_.oom; }

  bool holds(SessionId session, ChunkId chunk) const;
  const Ledger& ledger() const { return ledger_; }
  Totals totals() const;
  const Counts& counts() const { return counts_; }
  Bytes headroom() const { return config_.headroom; }

  // Walks every invariant. Null when all hold, else the one that does not. For tests and debug builds.
  const char* check() const;

 private:
  struct Chunk {
    std::size_t chunk_class;
    State state;
    bool used;          // was leased before
    bool foreign;       // as it was said at its creation
    DomainId domain;    // of its users; none while unused
    SessionId session;  // leased to, or being created for

    Bytes bytes() const { return kClasses[chunk_class].bytes; }
  };

  Granted lease(SessionId session, Account& account, ChunkId id, Chunk& chunk);
  void end_lease(Account& account, ChunkId id, Chunk& chunk);
  void make_idle(ChunkId id, Chunk& chunk);
  Release make_dying(ChunkId id, Chunk& chunk);
  Release make_releasing(ChunkId id);
  Releases trim();
  // Gives up idle chunks until `wanted` bytes have become free or none is left.
  Releases make_room(Bytes wanted);
  void move_state(Chunk& chunk, State to);
  // Notes that the driver gets memory back that this domain has used.
  void note_gone(const Chunk& chunk);
  bool is_foreign_to(DomainId domain) const { return several_gone_ || (gone_ != DomainId{} && gone_ != domain); }
  Bytes& bytes_in(State state) { return in_state_[static_cast<std::size_t>(state)]; }
  Bytes bytes_in(State state) const { return in_state_[static_cast<std::size_t>(state)]; }

  Config config_;
  std::uint64_t next_id_;
  Bytes known_free_ = kUnlimited;  // predicted: what the driver has free once all commands so far are done
  Ledger ledger_;
  IdleLists idle_;
  std::unordered_map<ChunkId, Chunk> chunks_;
  Bytes in_state_[5] = {};
  DomainId gone_{};  // whose memory the driver has got back: none, one, or several
  bool several_gone_ = false;
  Counts counts_;
};

}  // namespace vramd::chunks
