// Accounts of the sessions on one device: what each holds and may hold. Knows nothing of lists and states of
// chunks.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "allocator/chunks/values.hpp"

namespace vramd::chunks {

struct Account {
  DomainId domain{};
  Limits limits;
  Bytes leased;
  Bytes pending;  // being created for this session; counts against its limit so that requests in flight
                  // cannot pass it
  Bytes charged;  // memory outside the pool
  std::uint32_t pending_count = 0;
  std::unordered_set<ChunkId> chunks;
  std::unordered_set<ChunkId> unacknowledged;  // part of `chunks`

  Bytes used() const { return leased + pending + charged; }
};

class Ledger {
 public:
  // False when the session has an account already.
  bool open(SessionId session, DomainId domain, const Limits& limits);
  void close(SessionId session) { accounts_.erase(session); }

  // Null when there is no such account. The pointer is good until the next open() or close().
  Account* find(SessionId session);
  const Account* find(SessionId session) const;

  // What the session's own limit and its group's still allow it. 0 when a limit was lowered below what is
  // held.
  Bytes room(const Account& account) const;

  // Enters (bytes > 0) or removes (bytes < 0) memory outside the pool. False when a limit forbids it (never for a fact), or
  // when more would be removed than was entered; then nothing has changed.
  bool charge(Account& account, std::int64_t bytes, bool is_fact);

  const std::unordered_map<SessionId, Account>& accounts() const { return accounts_; }

 private:
  Bytes group_used(GroupId group) const;

  std::unordered_map<SessionId, Account> accounts_;
};

}  // namespace vramd::chunks
