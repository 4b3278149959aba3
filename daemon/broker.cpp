#include "daemon/broker.hpp"

#include <string.h>

#include <algorithm>

#include "daemon/log.hpp"
#include "daemon/text.hpp"

namespace vramd {
namespace {

constexpr Nanos kDeafTime = seconds(10);

std::string job_of(const protocol::Hello& hello) { return std::string(hello.job, ::strnlen(hello.job, sizeof hello.job)); }

}  // namespace

Broker::Broker(std::vector<std::unique_ptr<Device>> devices, int driver_version, policy::Policy policy, std::uint64_t epoch)
    : devices_(std::move(devices)), driver_version_(driver_version), policy_(std::move(policy)), epoch_(epoch) {
  for (const auto& device : devices_) {
    Device::Recalls recalls;
    recalls.recall = [this](Device& on, SessionId asking, Bytes bytes) { return recall(on, asking, bytes); };
    recalls.late = [this](SessionId late) {
      ++late_recalls_;
      if (Session* session = find(late)) session->deaf_until = MonotonicClock{}.now() + kDeafTime;
    };
    recalls.call_after = [this](Nanos time, std::function<void()> call) { call_after(time, std::move(call)); };
    device->set_recalls(std::move(recalls));
  }
}

void Broker::set_line(SessionId id, Line line) {
  if (Session* session = find(id)) session->line = std::move(line);
}

std::vector<std::pair<Session*, Bytes>> Broker::idle_holders(const Device& device, SessionId asking) {
  std::vector<std::pair<Session*, Bytes>> holders;
  const Nanos now = MonotonicClock{}.now();
  for (auto& [id, session] : sessions_) {
    if (id == asking || !session.line || session.process_ended || session.goodbye || now < session.deaf_until) continue;
    const chunks::Account* account = device.pool().ledger().find(id);
    if (account == nullptr) continue;
    // It can't give back more than it holds, whatever it says.
    const Bytes idle = std::min(session.line->idle(device.facts().index), account->leased + account->charged);
    if (idle != Bytes{}) holders.emplace_back(&session, idle);
  }
  std::sort(holders.begin(), holders.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return holders;
}

// One more granule than is asked for: what comes back is whole segments of others.
std::vector<std::pair<SessionId, std::uint32_t>> Broker::recall(Device& device, SessionId asking, Bytes bytes) {
  std::vector<std::pair<SessionId, std::uint32_t>> asked;
  if (!call_after) return asked;
  Bytes found;
  for (const auto& [session, idle] : idle_holders(device, asking)) {
    if (found >= bytes) break;
    const std::uint32_t number = next_recall_++;
    session->line->recall(number, device.facts().index, std::min(idle, bytes - found));
    ++recalls_;
    asked.emplace_back(session->id, number);
    found += idle;
  }
  return asked;
}

Session* Broker::find(SessionId session) {
  const auto at = sessions_.find(session);
  return at == sessions_.end() ? nullptr : &at->second;
}

protocol::Status Broker::admit(const Peer& peer) const {
  if (sessions_.size() >= kMaxSessions) return protocol::Status::too_many;
  const auto same_user =
      std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& entry) { return entry.second.uid == peer.uid; });
  return static_cast<std::size_t>(same_user) < kMaxSessionsPerUser ? protocol::Status::ok : protocol::Status::too_many;
}

chunks::DomainId Broker::domain_of(const Peer& peer) {
  const auto next = static_cast<std::uint32_t>(domains_.size() + 1);
  return domains_.try_emplace({peer.uid, peer.container}, chunks::DomainId{next}).first->second;
}

Broker::Greeting Broker::hello(const protocol::Hello& hello, const Peer& peer, Wire wire) {
  Greeting greeting;
  greeting.reply = protocol::make<protocol::HelloReply>(hello.header.request);
  greeting.reply.daemon_epoch = epoch_;
  greeting.reply.mode = policy_.mode;
  const auto refuse = [&](protocol::Status status) {
    greeting.reply.header.status = status;
    return greeting;
  };
  if (hello.version_min > protocol::kVersion || hello.version_max < protocol::kVersion)
    return refuse(protocol::Status::version_mismatch);
  if (hello.device_count > protocol::kMaxDevices) return refuse(protocol::Status::malformed);
  if (hello.role == protocol::Role::admin) {
    greeting.keep = true;
    return greeting;
  }
  if (hello.role != protocol::Role::session) return refuse(protocol::Status::malformed);

  Session session;
  session.id = SessionId{next_session_};
  session.wire = std::move(wire);
  session.pid = peer.pid;
  session.uid = peer.uid;
  session.subject = {peer.user, peer.groups, peer.command, peer.container, peer.cgroup, job_of(hello)};
  session.domain = domain_of(peer);
  session.mode = decide_mode(policy_.mode, hello.mode);
  session.wished_priority = hello.priority;
  if (hello.limit_bytes != 0) session.wished_limit = {hello.limit_bytes};
  fill_device_table(hello, greeting.reply, session);
  fill_limits(hello, greeting.reply, session);
  greeting.reply.mode = session.mode;
  if (const auto status = admit(peer); status != protocol::Status::ok) return refuse(status);

  ++next_session_;
  for (const auto& device : devices_)
    if (session.sources[device->facts().index] != protocol::Source::none)
      device->open(session.id, session.domain, limits_for(session, *device));
  greeting.reply.session = static_cast<std::uint64_t>(session.id);
  greeting.keep = true;
  greeting.session = session.id;
  log::info(text("session ", static_cast<std::uint64_t>(session.id), ": ", session.subject.command, " (pid ", session.pid,
                 ", user ", session.subject.user, ", ", session.subject.container, "), mode ", name_of(session.mode)));
  sessions_.emplace(greeting.session, std::move(session));
  return greeting;
}

// Limits go out with the greeting, a refusal too: a process that has to do without the daemon keeps to them.
void Broker::fill_limits(const protocol::Hello& hello, protocol::HelloReply& reply, Session& session) {
  for (std::uint32_t i = 0; i < hello.device_count; ++i) {
    const std::uint32_t index = reply.devices[i].index;
    if (index == UINT32_MAX) continue;
    const chunks::Limits limits = limits_for(session, *devices_[index]);
    reply.limit_bytes[i] = std::min(limits.session, limits.group_limit).value;
  }
}

void Broker::fill_device_table(const protocol::Hello& hello, protocol::HelloReply& reply, Session& session) const {
  reply.device_count = hello.device_count;
  for (std::uint32_t i = 0; i < hello.device_count; ++i) {
    protocol::DeviceEntry& entry = reply.devices[i];
    entry.index = UINT32_MAX;
    for (const auto& device : devices_) {
      if (::memcmp(device->facts().uuid.bytes, hello.devices[i].bytes, sizeof hello.devices[i].bytes) != 0) continue;
      entry.index = device->facts().index;
      entry.total_bytes = device->facts().total.value;
      if (session.mode == protocol::Mode::off)
        entry.source = protocol::Source::none;
      else if (session.mode == protocol::Mode::observe || !device->facts().virtual_memory)
        entry.source = protocol::Source::native;
      else if (!device->lends() || hello.driver_version != driver_version_)
        entry.source = protocol::Source::local;  // handles of another driver version cannot be imported
      else
        entry.source = protocol::Source::daemon;
      session.sources[entry.index] = entry.source;
    }
  }
}

chunks::Limits Broker::limits_for(Session& session, const Device& device) {
  chunks::Limits limits;
  limits.session = session.wished_limit;
  const auto* rule = first_match(policy_.sessions, session.subject, static_cast<int>(device.facts().index));
  session.priority = decide_priority(rule == nullptr ? protocol::Priority::normal : rule->priority, session.wished_priority);
  if (session.ordered_limit) {
    limits.session = std::min(limits.session, *session.ordered_limit);
    return limits;
  }
  if (rule == nullptr || !rule->limit) return limits;
  const Bytes limit{rule->limit->of(device.facts().total.value)};
  const std::string key = sharing_key(*rule, session.subject);
  if (key.empty()) {
    limits.session = std::min(limits.session, limit);
    return limits;
  }
  const auto next = static_cast<std::uint32_t>(groups_.size() + 1);
  limits.group = groups_.try_emplace(key, chunks::GroupId{next}).first->second;
  limits.group_limit = limit;
  return limits;
}

void Broker::set_policy(policy::Policy policy) {
  policy_ = std::move(policy);
  for (const auto& device : devices_)
    if (device->lends()) device->configure(policy_);
  for (auto& [id, session] : sessions_)
    for (const auto& device : devices_)
      if (session.sources[device->facts().index] != protocol::Source::none)
        device->set_limits(id, limits_for(session, *device));
}

void Broker::process_ended(SessionId id) {
  Session* session = find(id);
  if (session != nullptr) session->process_ended = true;
}

void Broker::end(SessionId id) {
  const Session* session = find(id);
  if (session == nullptr) return;
  Bytes held;
  for (const auto& device : devices_) {
    const chunks::Account* account = device->pool().ledger().find(id);
    if (account == nullptr) continue;
    held += account->leased;
    device->end(id);
  }
  const std::string rest =
      held == Bytes{} ? "" : text(", held ", held.value >> 20, " MiB: the driver has them back when the process has ended");
  log::info(text("session ", static_cast<std::uint64_t>(id), ": ended", rest));
  sessions_.erase(id);
}

bool Broker::saturated(SessionId id) const {
  const auto at = sessions_.find(id);
  return at != sessions_.end() && at->second.waiting >= kMaxWaiting;
}

void Broker::refresh_devices() {
  for (const auto& device : devices_) device->refresh();
}

bool Broker::stop(Nanos deadline) {
  sessions_.clear();
  bool ended = true;
  for (const auto& device : devices_) ended = device->stop(deadline) && ended;
  return ended;
}

void Broker::fill(Snapshot& snapshot) const {
  snapshot.epoch = epoch_;
  snapshot.driver_version = driver_version_;
  snapshot.mode = name_of(policy_.mode);
  snapshot.recalls = recalls_;
  snapshot.late_recalls = late_recalls_;
  for (const auto& device : devices_) {
    DeviceSnapshot values;
    values.index = device->facts().index;
    values.uuid = device->facts().uuid_text;
    values.name = device->facts().name;
    values.pci_bus_id = device->facts().pci_bus_id;
    values.context = device->lends();
    values.total = device->facts().total;
    values.free = device->free();
    values.stranded = device->stranded();
    values.totals = device->pool().totals();
    values.counts = device->pool().counts();
    values.sessions = device->pool().ledger().accounts().size();
    snapshot.devices.push_back(std::move(values));
  }
  for (const auto& [id, session] : sessions_) {
    SessionSnapshot values;
    values.id = static_cast<std::uint64_t>(id);
    values.pid = session.pid;
    values.uid = session.uid;
    values.user = session.subject.user;
    values.command = session.subject.command;
    values.container = session.subject.container;
    values.job = session.subject.job;
    values.mode = name_of(session.mode);
    values.priority = name_of(session.priority);
    for (const auto& device : devices_) {
      const chunks::Account* account = device->pool().ledger().find(id);
      if (account == nullptr) continue;
      const Bytes limit = std::min(account->limits.session, account->limits.group_limit);
      values.devices.push_back(
          {device->facts().index, name_of(session.sources[device->facts().index]), account->leased, account->charged, limit});
    }
    snapshot.sessions.push_back(std::move(values));
  }
}

}  // namespace vramd
