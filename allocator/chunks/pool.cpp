#include "allocator/chunks/pool.hpp"

#include <cassert>

namespace vramd::chunks {

Releases Pool::configure(Bytes retain, Bytes headroom) {
  config_.retain = retain;
  config_.headroom = headroom;
  return trim();
}

Releases Pool::release_idle() {
  Releases releases;
  while (const auto chunk = idle_.pop_least_useful()) {
    releases.push_back(make_releasing(*chunk));
    ++counts_.trimmed;
  }
  return releases;
}

void Pool::observe_free(Bytes driver_free) {
  // The measurement belongs to the last reported command; those still on their way are counted in advance.
  known_free_ = saturating_sub(driver_free, bytes_in(State::creating)) + bytes_in(State::releasing);
}

bool Pool::open(SessionId session, DomainId domain, const Limits& limits) { return ledger_.open(session, domain, limits); }

void Pool::set_limits(SessionId session, const Limits& limits) {
  Account* account = ledger_.find(session);
  assert(account != nullptr);
  account->limits = limits;
}

Releases Pool::end(SessionId session) {
  Account* account = ledger_.find(session);
  assert(account != nullptr);
  Releases releases;
  const auto held = account->chunks;  // a copy: end_lease() takes from the set
  for (const ChunkId id : held) {
    Chunk& chunk = chunks_.at(id);
    end_lease(*account, id, chunk);
    releases.push_back(make_dying(id, chunk));
  }
  ledger_.close(session);
  return releases;
}

Decision Pool::request(SessionId session, Bytes bytes) {
  const auto chunk_class = class_of(bytes);
  if (!chunk_class) return Refused{Refusal::not_a_class};
  Account* account = ledger_.find(session);
  assert(account != nullptr);
  if (account->unacknowledged.size() + account->pending_count >= config_.max_unacknowledged)
    return Refused{Refusal::too_many_unacknowledged};
  if (bytes > ledger_.room(*account)) {
    ++counts_.over_limit;
    return Refused{Refusal::over_limit};
  }

  auto warm = idle_.pop(*chunk_class, account->domain);
  if (!warm) warm = idle_.pop(*chunk_class, DomainId{});
  if (warm) {
    ++counts_.hit;
    return lease(session, *account, *warm, chunks_.at(*warm));
  }

  const ChunkId id{next_id_++};
  chunks_.emplace(id, Chunk{*chunk_class, State::creating, false, false, DomainId{}, session});
  bytes_in(State::creating) += bytes;
  account->pending += bytes;
  ++account->pending_count;
  const Bytes needed = bytes + config_.headroom;
  Releases releases;
  if (known_free_ < needed) releases = make_room(needed - known_free_);
  known_free_ = saturating_sub(known_free_, bytes);
  const bool foreign = chunks_.at(id).foreign = is_foreign_to(account->domain);
  if (releases.empty()) return NeedCreate{id, bytes, foreign};
  return NeedConvert{std::move(releases), id, bytes, foreign};
}

Decision Pool::created(ChunkId id) {
  Chunk& chunk = chunks_.at(id);
  assert(chunk.state == State::creating);
  const SessionId session = chunk.session;
  Account* account = ledger_.find(session);
  if (account != nullptr) {
    account->pending -= chunk.bytes();
    --account->pending_count;
    ++counts_.miss;
    return lease(session, *account, id, chunk);
  }
  // Whom it was created for is gone. It may hold bytes of that domain, and then of no other that we could name.
  if (!chunk.foreign && (gone_ != DomainId{} || several_gone_)) {
    chunk.session = SessionId{};
    return Kept{{make_releasing(id)}};
  }
  // Nobody has seen it, and it is cleared, or nobody's memory has come back yet: it is fresh for anybody.
  make_idle(id, chunk);
  return Kept{trim()};
}

Decision Pool::create_failed(ChunkId id, CreateFailure why) {
  Chunk& chunk = chunks_.at(id);
  assert(chunk.state == State::creating);
  const Bytes bytes = chunk.bytes();
  Account* account = ledger_.find(chunk.session);
  if (account != nullptr && why == CreateFailure::out_of_memory) {
    // The driver's word counts, not known_free_. All idle chunks may go for one that is asked for, a step at
    // a time.
    Releases releases = make_room(bytes);
    chunk.foreign = is_foreign_to(account->domain);
    if (!releases.empty()) return NeedConvert{std::move(releases), id, bytes, chunk.foreign};
  }
  if (account != nullptr) {
    account->pending -= bytes;
    --account->pending_count;
  }
  bytes_in(State::creating) -= bytes;
  chunks_.erase(id);
  return Refused{why == CreateFailure::out_of_memory ? Refusal::out_of_memory : Refusal::driver_failed};
}

void Pool::released(ChunkId id) {
  const auto at = chunks_.find(id);
  assert(at != chunks_.end());
  assert(at->second.state == State::releasing || at->second.state == State::dying);
  bytes_in(at->second.state) -= at->second.bytes();
  chunks_.erase(at);
}

bool Pool::acknowledge(SessionId session, ChunkId id) {
  Account* account = ledger_.find(session);
  return account != nullptr && account->unacknowledged.erase(id) != 0;
}

std::optional<Releases> Pool::give_back(SessionId session, ChunkId id) {
  Account* account = ledger_.find(session);
  if (account == nullptr || account->chunks.count(id) == 0) return std::nullopt;
  Chunk& chunk = chunks_.at(id);
  const bool usable = account->unacknowledged.count(id) == 0;
  end_lease(*account, id, chunk);
  if (!usable) return Releases{make_dying(id, chunk)};
  make_idle(id, chunk);
  return trim();
}

std::optional<Release> Pool::revoke(SessionId session, ChunkId id) {
  Account* account = ledger_.find(session);
  if (account == nullptr || account->chunks.count(id) == 0) return std::nullopt;
  Chunk& chunk = chunks_.at(id);
  end_lease(*account, id, chunk);
  return make_dying(id, chunk);
}

Charged Pool::charge(SessionId session, std::int64_t bytes, bool is_fact) {
  Account* account = ledger_.find(session);
  assert(account != nullptr);
  if (!ledger_.charge(*account, bytes, is_fact)) {
    if (bytes > 0) ++counts_.over_limit;
    return {false, {}};
  }
  Charged result{true, {}};
  if (bytes > 0) {
    const Bytes needed{static_cast<std::uint64_t>(bytes)};
    if (known_free_ < needed) result.releases = make_room(needed - known_free_);
    known_free_ = saturating_sub(known_free_, needed);
  }
  return result;
}

bool Pool::holds(SessionId session, ChunkId chunk) const {
  const Account* account = ledger_.find(session);
  return account != nullptr && account->chunks.count(chunk) != 0;
}

Totals Pool::totals() const {
  Bytes charged;
  for (const auto& [id, account] : ledger_.accounts()) charged += account.charged;
  return {bytes_in(State::leased),    bytes_in(State::idle),  bytes_in(State::creating),
          bytes_in(State::releasing), bytes_in(State::dying), charged};
}

Granted Pool::lease(SessionId session, Account& account, ChunkId id, Chunk& chunk) {
  const bool fresh = !chunk.used;
  assert(fresh || chunk.domain == account.domain);
  if (!fresh) ++counts_.recycled;
  move_state(chunk, State::leased);
  chunk.used = true;
  chunk.domain = account.domain;
  chunk.session = session;
  account.leased += chunk.bytes();
  account.chunks.insert(id);
  account.unacknowledged.insert(id);
  return {session, id, chunk.bytes(), fresh};
}

void Pool::end_lease(Account& account, ChunkId id, Chunk& chunk) {
  account.leased -= chunk.bytes();
  account.chunks.erase(id);
  account.unacknowledged.erase(id);
  chunk.session = SessionId{};
}

void Pool::make_idle(ChunkId id, Chunk& chunk) {
  move_state(chunk, State::idle);
  chunk.session = SessionId{};
  idle_.push(chunk.chunk_class, chunk.domain, id);
}

void Pool::note_gone(const Chunk& chunk) {
  if (!chunk.used) return;
  several_gone_ = several_gone_ || (gone_ != DomainId{} && gone_ != chunk.domain);
  gone_ = chunk.domain;
}

Release Pool::make_dying(ChunkId id, Chunk& chunk) {
  note_gone(chunk);
  move_state(chunk, State::dying);
  return {id, chunk.bytes(), true};
}

Release Pool::make_releasing(ChunkId id) {
  Chunk& chunk = chunks_.at(id);
  note_gone(chunk);
  move_state(chunk, State::releasing);
  known_free_ = known_free_ == kUnlimited ? kUnlimited : known_free_ + chunk.bytes();
  return {id, chunk.bytes(), false};
}

Releases Pool::trim() {
  Releases releases;
  while (idle_.bytes() > config_.retain) {
    releases.push_back(make_releasing(*idle_.pop_least_useful()));
    ++counts_.trimmed;
  }
  return releases;
}

Releases Pool::make_room(Bytes wanted) {
  Releases releases;
  for (Bytes freed; freed < wanted;) {
    const auto victim = idle_.pop_least_useful();
    if (!victim) break;
    releases.push_back(make_releasing(*victim));
    freed += releases.back().bytes;
    ++counts_.converted;
  }
  return releases;
}

void Pool::move_state(Chunk& chunk, State to) {
  bytes_in(chunk.state) -= chunk.bytes();
  chunk.state = to;
  bytes_in(to) += chunk.bytes();
}

}  // namespace vramd::chunks
