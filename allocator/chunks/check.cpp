// The invariants of pool.hpp, recomputed from scratch.
#include <unordered_set>

#include "allocator/chunks/pool.hpp"

namespace vramd::chunks {

const char* Pool::check() const {
  Bytes sums[5] = {};
  std::unordered_map<SessionId, Bytes> leased, pending;
  std::unordered_map<SessionId, std::uint32_t> pending_count;
  for (const auto& [id, chunk] : chunks_) {
    sums[static_cast<std::size_t>(chunk.state)] += chunk.bytes();
    switch (chunk.state) {
      case State::leased: {
        const Account* account = ledger_.find(chunk.session);
        if (account == nullptr) return "a leased chunk belongs to no session";
        if (account->chunks.count(id) == 0) return "a leased chunk is missing in its session's account";
        if (chunk.domain != account->domain) return "a chunk is leased outside its domain";
        if (!chunk.used) return "a leased chunk counts as unused";
        leased[chunk.session] += chunk.bytes();
        break;
      }
      case State::creating:
        if (chunk.used) return "a chunk was used before it was created";
        pending[chunk.session] += chunk.bytes();
        ++pending_count[chunk.session];
        break;
      case State::idle:
      case State::releasing:
      case State::dying:
        if (chunk.session != SessionId{}) return "a chunk that is not leased names a session";
        break;
    }
    if (!chunk.used && chunk.domain != DomainId{}) return "an unused chunk has a domain";
  }
  for (std::size_t i = 0; i < 5; ++i)
    if (sums[i] != in_state_[i]) return "the bytes of a state are not the sum of its chunks";

  Bytes accounts_leased;
  for (const auto& [id, account] : ledger_.accounts()) {
    if (account.leased != leased[id]) return "an account's leased bytes are not the sum of its chunks";
    if (account.pending != pending[id] || account.pending_count != pending_count[id])
      return "an account's pending bytes are not the sum of what is being created for it";
    for (const ChunkId chunk : account.unacknowledged)
      if (account.chunks.count(chunk) == 0) return "an unacknowledged chunk is not leased";
    for (const ChunkId chunk : account.chunks) {
      const auto at = chunks_.find(chunk);
      if (at == chunks_.end() || at->second.state != State::leased || at->second.session != id)
        return "an account holds a chunk that is not leased to it";
    }
    if (account.unacknowledged.size() + account.pending_count > config_.max_unacknowledged)
      return "a session has too many unacknowledged chunks";
    accounts_leased += account.leased;
  }
  if (accounts_leased != bytes_in(State::leased)) return "granted bytes are not the sum over the sessions";

  const char* fault = nullptr;
  std::unordered_set<ChunkId> seen;
  Bytes idle;
  idle_.visit([&](std::size_t chunk_class, DomainId domain, ChunkId id) {
    const auto at = chunks_.find(id);
    if (at == chunks_.end() || at->second.state != State::idle)
      fault = "a chunk in an idle list is not idle";
    else if (at->second.chunk_class != chunk_class || at->second.domain != domain)
      fault = "a chunk is in the wrong idle list";
    if (!seen.insert(id).second) fault = "a chunk is in two idle lists";
    idle += kClasses[chunk_class].bytes;
  });
  if (fault != nullptr) return fault;
  if (idle != bytes_in(State::idle) || idle != idle_.bytes()) return "idle bytes are not what the lists hold";
  return nullptr;
}

}  // namespace vramd::chunks
