#include "daemon/device.hpp"

#include <algorithm>

#include "daemon/log.hpp"
#include "daemon/text.hpp"

namespace vramd {
namespace {

chunks::Pool::Config pool_config(const DeviceFacts& facts, const policy::Policy& policy, int index_shift) {
  chunks::Pool::Config config;
  config.retain = {policy.pool_retain.of(facts.total.value)};
  config.headroom = {policy.pool_headroom.of(facts.total.value)};
  config.max_unacknowledged = protocol::kMaxUnacknowledged;
  config.first_id = (static_cast<std::uint64_t>(facts.index) << index_shift) + 1;
  return config;
}

protocol::Status status_of(chunks::Refusal reason) {
  switch (reason) {
    case chunks::Refusal::not_a_class: return protocol::Status::malformed;
    case chunks::Refusal::over_limit: return protocol::Status::over_limit;
    case chunks::Refusal::too_many_unacknowledged: return protocol::Status::too_many;
    case chunks::Refusal::out_of_memory: return protocol::Status::out_of_memory;
    case chunks::Refusal::driver_failed: break;
  }
  return protocol::Status::internal;
}

}  // namespace

Device::Device(const Driver& driver, const DeviceFacts& facts, const policy::Policy& policy, std::size_t fd_capacity,
               DeviceActor::Post post, Answer answer)
    : driver_(driver),
      facts_(facts),
      pool_(pool_config(facts, policy, kIndexShift)),
      scrub_(policy.pool_scrub),
      fd_capacity_(fd_capacity),
      post_(std::move(post)),
      answer_(std::move(answer)),
      free_(facts.total) {}

void Device::start() {
  if (!facts_.virtual_memory) {
    log::warning(text("GPU ", facts_.index, " (", facts_.name,
                      "): no virtual memory management; sessions allocate "
                      "natively, inside ledger and limits"));
    return;
  }
  if (facts_.exclusive) {
    log::warning(text("GPU ", facts_.index, " (", facts_.name,
                      "): compute mode EXCLUSIVE_PROCESS; a context of vramd "
                      "would lock jobs out, so sessions use their local source"));
    return;
  }
  auto actor = std::make_unique<DeviceActor>(driver_, facts_.handle, post_);
  const auto first = actor->start();
  if (!first) {
    log::warning(text("GPU ", facts_.index, " (", facts_.name, "): ", first.error().what, " failed with CUDA error ",
                      first.error().detail, "; sessions use their local source"));
    return;
  }
  actor_ = std::move(actor);
  free_ = first->free;
  stranded_.emplace(facts_.total, *first);
  pool_.observe_free(free_);
}

bool Device::stop(Nanos deadline) { return actor_ == nullptr || actor_->stop(deadline); }

void Device::configure(const policy::Policy& policy) {
  // What lies idle was created as the driver gave it.
  const bool trusted_driver = std::exchange(scrub_, policy.pool_scrub) == policy::Scrub::driver;
  if (trusted_driver && scrub_ != policy::Scrub::driver) release(pool_.configure({}, pool_.headroom()));
  const auto config = pool_config(facts_, policy, kIndexShift);
  release(pool_.configure(config.retain, config.headroom));
}

void Device::open(SessionId session, chunks::DomainId domain, const chunks::Limits& limits) {
  pool_.open(session, domain, limits);
}

void Device::end(SessionId session) {
  std::erase_if(waiting_, [&](const Ask& ask) { return ask.session == session; });
  // Its chunks are on their way to the driver, which may have enough then.
  release(pool_.end(session), [this, session] {
    std::erase_if(unanswered_, [&](const Recall& recall) { return recall.session == session; });
    try_waiting();
  });
}

void Device::request(SessionId session, std::uint32_t request, Bytes bytes) {
  apply(pool_.request(session, bytes), {session, request, bytes});
}

void Device::apply(const chunks::Decision& decision, const Ask& ask) {
  if (const auto* granted = std::get_if<chunks::Granted>(&decision)) {
    deliver(*granted, ask.request);
  } else if (const auto* needed = std::get_if<chunks::NeedCreate>(&decision)) {
    create(needed->chunk, ask, needed->foreign);
  } else if (const auto* convert = std::get_if<chunks::NeedConvert>(&decision)) {
    release(convert->releases);
    create(convert->chunk, ask, convert->foreign);
  } else if (const auto* kept = std::get_if<chunks::Kept>(&decision)) {
    release(kept->releases);
  } else if (const auto* refused = std::get_if<chunks::Refused>(&decision)) {
    if (refused->reason == chunks::Refusal::out_of_memory && wait_for_others(ask)) return;
    refuse(ask.session, ask.request, refused->reason);
  }
}

// Whether the request waits now: for the first time, after asking others, or again.
bool Device::wait_for_others(Ask ask) {
  if (!recalls_.recall || pool_.ledger().find(ask.session) == nullptr) return false;
  if (ask.turn == 0) {
    const auto asked = recalls_.recall(*this, ask.session, ask.bytes);
    if (asked.empty() && unanswered_.empty()) return false;
    ask.turn = ++turns_;
    for (const auto& [session, number] : asked) unanswered_.push_back({session, number, ask.turn});
    recalls_.call_after(kRecallTime, [this, turn = ask.turn] { end_turn(turn); });
  } else if (unanswered_.empty() || ask.turn <= ended_turn_) {
    return false;
  }
  waiting_.push_back(ask);
  return true;
}

// The time of this turn, and of all before it, is up.
void Device::end_turn(std::uint64_t turn) {
  ended_turn_ = turn;
  std::erase_if(unanswered_, [&](const Recall& recall) {
    if (recall.turn > turn) return false;
    recalls_.late(recall.session);
    return true;
  });
  try_waiting();
}

void Device::recalled(SessionId session, std::uint32_t number) {
  std::erase_if(unanswered_, [&](const Recall& recall) { return recall.session == session && recall.number == number; });
  try_waiting();
}

// Who still can't be served is back in waiting_ afterwards, or refused.
void Device::try_waiting() {
  for (const Ask& ask : std::exchange(waiting_, {})) apply(pool_.request(ask.session, ask.bytes), ask);
}

void Device::refuse(SessionId session, std::uint32_t request, chunks::Refusal reason) {
  if (reason == chunks::Refusal::out_of_memory) pool_.count_out_of_memory();
  GrantAnswer answer;
  answer.status = status_of(reason);
  answer_(session, request, answer);
}

void Device::deliver(const chunks::Granted& granted, std::uint32_t request) {
  if (granted.fresh || scrub_ != policy::Scrub::always) return deliver_as_it_is(granted, request);
  actor_->clear(granted.chunk,
                [this, granted, request](const Result<void>& cleared) { deliver_cleared(granted, request, cleared); });
}

void Device::deliver_cleared(const chunks::Granted& granted, std::uint32_t request, const Result<void>& cleared) {
  // The session may have ended while the actor worked.
  if (!pool_.holds(granted.session, granted.chunk)) return;
  if (cleared) return deliver_as_it_is(granted, request);
  log::error(text("GPU ", facts_.index, ": ", cleared.error().what, ": error ", cleared.error().detail));
  if (const auto revoked = pool_.revoke(granted.session, granted.chunk)) release({*revoked});
  refuse(granted.session, request, chunks::Refusal::driver_failed);
}

void Device::deliver_as_it_is(const chunks::Granted& granted, std::uint32_t request) {
  const auto cached = fds_.find(granted.chunk);
  if (cached != fds_.end()) {
    answer_(granted.session, request,
            {protocol::Status::ok, granted.chunk, granted.bytes, granted.fresh, cached->second.get()});
    return;
  }
  actor_->export_fd(granted.chunk, [this, granted, request](Result<int> fd) { deliver_exported(granted, request, fd); });
}

void Device::deliver_exported(const chunks::Granted& granted, std::uint32_t request, Result<int> exported) {
  UniqueFd fd(exported ? *exported : -1);
  // The session may have ended while the actor worked.
  if (!pool_.holds(granted.session, granted.chunk)) return;
  if (!exported) {
    log::error(text("GPU ", facts_.index, ": ", exported.error().what, ": error ", exported.error().detail));
    if (const auto revoked = pool_.revoke(granted.session, granted.chunk)) release({*revoked});
    return refuse(granted.session, request, chunks::Refusal::driver_failed);
  }
  int borrowed = fd.get();
  if (fds_.size() < fd_capacity_) fds_[granted.chunk] = std::move(fd);
  answer_(granted.session, request, {protocol::Status::ok, granted.chunk, granted.bytes, granted.fresh, borrowed});
}

void Device::create(ChunkId chunk, const Ask& ask, bool foreign) {
  const bool clear = scrub_ == policy::Scrub::always || (foreign && scrub_ == policy::Scrub::domain);
  actor_->create(chunk, ask.bytes, pool_.headroom(), clear,
                 [this, chunk, ask](const DeviceActor::Created& created) { on_created(chunk, ask, created); });
}

void Device::on_created(ChunkId chunk, const Ask& ask, const DeviceActor::Created& created) {
  if (!created.fd) {
    const Error& error = created.fd.error();
    const bool full = error.code == ErrorCode::out_of_memory;
    if (!full) log::error(text("GPU ", facts_.index, ": ", error.what, ": CUDA error ", error.detail));
    const auto why = full ? chunks::CreateFailure::out_of_memory : chunks::CreateFailure::other;
    const chunks::Decision decision = pool_.create_failed(chunk, why);
    observe(created.measure);
    return apply(decision, ask);
  }
  UniqueFd fd(*created.fd);
  const chunks::Decision decision = pool_.created(chunk);
  observe(created.measure);
  if (const auto* granted = std::get_if<chunks::Granted>(&decision))
    return deliver_exported(*granted, ask.request, fd.release());
  if (fds_.size() < fd_capacity_) fds_[chunk] = std::move(fd);
  apply(decision, ask);
}

bool Device::give_back(SessionId session, ChunkId chunk) {
  auto releases = pool_.give_back(session, chunk);
  if (!releases) return false;
  release(std::move(*releases));
  return true;
}

void Device::trim(std::function<void(Bytes)> done) {
  const Bytes idle = pool_.totals().cached;
  release(pool_.release_idle(), [idle, done = std::move(done)] { done(idle); });
}

bool Device::question(SessionId session, std::int64_t bytes) {
  if (bytes <= 0 || Bytes{static_cast<std::uint64_t>(bytes)} <= limit_of(session)) return true;
  pool_.count_refusal();
  return false;
}

Bytes Device::limit_of(SessionId session) const {
  const chunks::Account* account = pool_.ledger().find(session);
  return account == nullptr ? chunks::kUnlimited : std::min(account->limits.session, account->limits.group_limit);
}

void Device::charge(SessionId session, std::int64_t bytes, bool is_fact, std::function<void(bool)> done) {
  chunks::Charged charged = pool_.charge(session, bytes, is_fact);
  if (charged.releases.empty()) return done(charged.accepted);
  release(std::move(charged.releases), [done = std::move(done)] { done(true); });
}

void Device::release(chunks::Releases releases, std::function<void()> done) {
  if (releases.empty()) {
    if (done) done();
    return;
  }
  for (const chunks::Release& release : releases) fds_.erase(release.chunk);
  std::vector<ChunkId> ids;
  for (const chunks::Release& release : releases) ids.push_back(release.chunk);
  actor_->release(std::move(releases),
                  [this, ids = std::move(ids), done = std::move(done)](const DeviceActor::Released& released) {
                    for (const ChunkId id : ids) pool_.released(id);
                    observe(released.measure, released.dirty);
                    if (done) done();
                  });
}

void Device::refresh(std::function<void()> done) {
  if (actor_ == nullptr) {
    if (done) done();
    return;
  }
  actor_->measure([this, done = std::move(done)](const Measure& measure) {
    observe(measure);
    if (done) done();
  });
}

void Device::observe(const Measure& measure, Bytes dirty_released) {
  free_ = measure.free;
  pool_.observe_free(measure.free);
  stranded_->observe(measure, dirty_released);
}

Bytes Device::stranded() const {
  // Chunks of dead sessions whose release is still on its way count as well.
  return (stranded_ ? stranded_->bytes() : Bytes{}) + pool_.totals().dying;
}

}  // namespace vramd
