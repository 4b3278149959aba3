// The broker's answers to packets of sessions and admins. Every packet is copied once, checked, then used.
#include <errno.h>

#include <algorithm>

#include "allocator/protocol/socket.hpp"
#include "daemon/broker.hpp"
#include "daemon/log.hpp"
#include "daemon/sealed.hpp"
#include "daemon/text.hpp"

namespace vramd {
namespace {

using protocol::Status;
using protocol::Type;

constexpr Verdict kKeep{};
constexpr Verdict kMalformed{"malformed"};

template <class M>
void send(const Wire& wire, const M& message, int fd = -1) {
  if (wire.send) wire.send(&message, sizeof message, fd);
}

std::uint64_t mebibytes(Bytes bytes) { return bytes.value >> 20; }

// What a session wants to have, as against what it tells.
bool is_wish(Type type) {
  return type == Type::grant || type == Type::charge || type == Type::memory_info || type == Type::status;
}

// Types that only the daemon sends. A peer that sends one is not a session of ours.
bool is_reply(Type type) {
  switch (type) {
    case Type::hello_reply:
    case Type::grant_reply:
    case Type::charge_reply:
    case Type::memory_info_reply:
    case Type::status_reply:
    case Type::recall:
    case Type::order_reply:
    case Type::error_reply: return true;
    default: return false;
  }
}

}  // namespace

Verdict Broker::packet(SessionId id, const void* data, std::size_t size) {
  Session* session = find(id);
  protocol::Header header;
  if (session == nullptr || !protocol::decode_header(data, size, header) || is_reply(header.type)) return kMalformed;
  if (session->goodbye) {  // it said that it is done
    if (is_wish(header.type)) send(session->wire, protocol::make<protocol::ErrorReply>(header.request, Status::refused));
    return violation(*session);
  }
  if (session->process_ended && is_wish(header.type)) return kKeep;
  switch (header.type) {
    case Type::grant: {
      protocol::Grant message;
      return protocol::decode(data, size, message) ? on_grant(*session, message) : kMalformed;
    }
    case Type::acknowledge: {
      protocol::Acknowledge message;
      if (!protocol::decode(data, size, message)) return kMalformed;
      const std::size_t index = Device::index_of(ChunkId{message.chunk});
      const bool known = index < devices_.size() && devices_[index]->acknowledge(id, ChunkId{message.chunk});
      return known ? kKeep : violation(*session);
    }
    case Type::give_back: {
      protocol::GiveBack message;
      return protocol::decode(data, size, message) ? on_give_back(*session, message) : kMalformed;
    }
    case Type::charge: {
      protocol::Charge message;
      return protocol::decode(data, size, message) ? on_charge(*session, message) : kMalformed;
    }
    case Type::memory_info: {
      protocol::MemoryInfo message;
      return protocol::decode(data, size, message) ? on_memory_info(*session, message) : kMalformed;
    }
    case Type::recalled: {
      protocol::Recalled message;
      if (!protocol::decode(data, size, message)) return kMalformed;
      if (message.device < devices_.size()) devices_[message.device]->recalled(id, header.request);
      note_recalled(header.request);
      return kKeep;
    }
    case Type::goodbye: session->goodbye = true; return kKeep;
    case Type::status: on_status(session->wire, header.request); return kKeep;
    case Type::hello: return kMalformed;  // one hello a connection
    case Type::order:
      send(session->wire, protocol::make<protocol::ErrorReply>(header.request, Status::refused));  // admins order
      return kKeep;
    default: send(session->wire, protocol::make<protocol::ErrorReply>(header.request, Status::unsupported)); return kKeep;
  }
}

Verdict Broker::admin_packet(const Wire& wire, unsigned uid, const void* data, std::size_t size) {
  protocol::Header header;
  if (!protocol::decode_header(data, size, header) || is_reply(header.type) || header.type == Type::hello) return kMalformed;
  switch (header.type) {
    case Type::status: on_status(wire, header.request); break;
    case Type::order: {
      protocol::Order order;
      if (!protocol::decode(data, size, order)) return kMalformed;
      on_order(wire, uid, order);
      break;
    }
    case Type::goodbye:
    case Type::acknowledge:
    case Type::recalled:
    case Type::give_back: break;  // have no reply, and admins hold nothing
    case Type::grant:
    case Type::charge:
    case Type::memory_info: send(wire, protocol::make<protocol::ErrorReply>(header.request, Status::refused)); break;
    default: send(wire, protocol::make<protocol::ErrorReply>(header.request, Status::unsupported)); break;
  }
  return kKeep;
}

Verdict Broker::violation(Session& session) const {
  if (++session.violations < kMaxViolations) return kKeep;
  return {"violations"};
}

// The device that a request names, if the session may use it.
Device* Broker::device_of(Session& session, std::uint32_t index, Status& status) {
  status = Status::no_device;
  if (index >= devices_.size() || session.sources[index] == protocol::Source::none) return nullptr;
  status = Status::ok;
  return devices_[index].get();
}

Verdict Broker::on_grant(Session& session, const protocol::Grant& message) {
  Status status;
  Device* device = device_of(session, message.device, status);
  if (device != nullptr && session.sources[message.device] != protocol::Source::daemon) status = Status::refused;
  ++session.waiting;
  if (status == Status::ok) {
    device->request(session.id, message.header.request, {message.bytes});
    return kKeep;
  }
  GrantAnswer answer;
  answer.status = status;
  answer_grant(session.id, message.header.request, answer);
  return kKeep;
}

void Broker::answer_grant(SessionId id, std::uint32_t request, const GrantAnswer& answer) {
  Session* session = find(id);
  if (session == nullptr) return;
  --session->waiting;
  auto reply = protocol::make<protocol::GrantReply>(request, answer.status);
  reply.chunk = static_cast<std::uint64_t>(answer.chunk);
  reply.bytes = answer.bytes.value;
  reply.flags = answer.fresh ? protocol::kGrantFresh : 0;
  send(session->wire, reply, answer.fd);
}

Verdict Broker::on_give_back(Session& session, const protocol::GiveBack& message) {
  if (message.count > protocol::kMaxChunksPerMessage) return kMalformed;
  Verdict verdict;
  for (std::uint32_t i = 0; i < message.count; ++i) {
    const ChunkId chunk{message.chunks[i]};
    const std::size_t index = Device::index_of(chunk);
    // What is not leased to this session is not taken; the rest of the message counts.
    if (index >= devices_.size() || !devices_[index]->give_back(session.id, chunk)) verdict = violation(session);
  }
  for (const auto& device : devices_) device->try_waiting();
  return verdict;
}

Verdict Broker::on_charge(Session& session, const protocol::Charge& message) {
  Status status;
  Device* device = device_of(session, message.device, status);
  const SessionId id = session.id;
  const std::uint32_t request = message.header.request;
  ++session.waiting;
  const auto answer = [this, id, request](Status result) {
    Session* still = find(id);
    if (still == nullptr) return;
    --still->waiting;
    send(still->wire, protocol::make<protocol::ChargeReply>(request, result));
  };
  if (device == nullptr) {
    answer(status);
    return kKeep;
  }
  if (message.kind == protocol::ChargeKind::question) {
    // Nothing is entered: a request above the limit was refused before any chunk was asked for.
    const Status told = device->question(id, message.bytes) ? Status::ok : Status::over_limit;
    if (told == Status::over_limit) {
      const Bytes asked{static_cast<std::uint64_t>(message.bytes)};
      log::info(text("session ", static_cast<std::uint64_t>(id), ": wants ", mebibytes(asked), " MiB of GPU ", message.device,
                     ", above its limit of ", mebibytes(device->limit_of(id)), " MiB"));
    }
    answer(told);
    return kKeep;
  }
  const Status refusal = message.bytes > 0 ? Status::over_limit : Status::malformed;
  const bool is_fact = message.kind == protocol::ChargeKind::native || message.kind == protocol::ChargeKind::kept;
  if (message.kind == protocol::ChargeKind::kept && message.bytes > 0) {
    log::info(text("session ", static_cast<std::uint64_t>(id), ": comes with ",
                   mebibytes({static_cast<std::uint64_t>(message.bytes)}), " MiB of GPU ", message.device, " from before"));
    device->unstrand({static_cast<std::uint64_t>(message.bytes)});
  }
  device->charge(id, message.bytes, is_fact, [=](bool accepted) { answer(accepted ? Status::ok : refusal); });
  return kKeep;
}

Verdict Broker::on_memory_info(Session& session, const protocol::MemoryInfo& message) {
  Status status;
  Device* device = device_of(session, message.device, status);
  const std::uint32_t request = message.header.request;
  if (device == nullptr) {
    send(session.wire, protocol::make<protocol::MemoryInfoReply>(request, status));
    return kKeep;
  }
  // The driver is asked each time: programs size themselves by the answer.
  ++session.waiting;
  device->refresh([this, id = session.id, device, request] {
    Session* still = find(id);
    if (still == nullptr) return;
    --still->waiting;
    send_memory_info(*still, *device, request);
  });
  return kKeep;
}

void Broker::send_memory_info(Session& session, Device& device, std::uint32_t request) {
  const chunks::Account* account = device.pool().ledger().find(session.id);
  if (account == nullptr) return;
  const Bytes total = device.facts().total;
  const Bytes limit = std::min(account->limits.session, account->limits.group_limit);
  auto reply = protocol::make<protocol::MemoryInfoReply>(request);
  reply.total_bytes = std::min(limit, total).value;
  reply.limit_bytes = limit.value;
  reply.used_bytes = account->used().value;
  // Idle chunks can be converted to whatever is asked for, whoever used them.
  // What others hold idle can be recalled.
  Bytes recallable;
  for (const auto& [holder, idle] : idle_holders(device, session.id)) recallable += idle;
  const Bytes backed = saturating_sub(device.free() + device.pool().totals().cached + recallable, device.pool().headroom());
  const Bytes room = device.pool().ledger().room(*account);
  reply.free_bytes = std::min({backed, room, Bytes{reply.total_bytes}}).value;
  send(session.wire, reply);
}

// To write the status takes time on the one loop that everybody waits for. So that a flood of requests takes at most a fifth of
// it, a status is followed by a pause of four times its own length; who asks meanwhile is answered together with the next.
void Broker::on_status(const Wire& wire, std::uint32_t request) {
  if (waiting_status_.size() >= kMaxWaitingStatus)
    return send(wire, protocol::make<protocol::StatusReply>(request, Status::too_many));
  waiting_status_.emplace_back(wire, request);
  const Nanos left = next_status_ - MonotonicClock{}.now();
  if (left.value <= 0) return answer_status();
  if (std::exchange(status_scheduled_, true)) return;
  call_after(left, [this] { answer_status(); });
}

void Broker::answer_status() {
  status_scheduled_ = false;
  const Nanos begin = MonotonicClock{}.now();
  const auto waiting = std::exchange(waiting_status_, {});
  const std::string json = status_text();
  for (const auto& [wire, request] : waiting) {
    auto fd = sealed_memory("vramd-status", json);  // one for each: a descriptor's position is shared with its copies
    if (!fd) log::error(text("status: ", fd.error().what, ": errno ", fd.error().detail));
    auto reply = protocol::make<protocol::StatusReply>(request, fd ? Status::ok : Status::internal);
    reply.bytes = fd ? json.size() : 0;
    send(wire, reply, fd ? fd->get() : -1);
  }
  const Nanos end = MonotonicClock{}.now();
  next_status_ = end + Nanos{(end - begin).value * 4};
}

}  // namespace vramd
