// What admins order: trims, limits, the policy file again.
#include <unistd.h>

#include <algorithm>

#include "daemon/broker.hpp"
#include "daemon/log.hpp"
#include "daemon/text.hpp"

namespace vramd {
namespace {

using protocol::Status;
using protocol::Verb;

bool may_order_anything(unsigned uid) { return uid == 0 || uid == ::geteuid(); }

void answer(const Wire& wire, std::uint32_t request, Status status, Bytes bytes = {}) {
  auto reply = protocol::make<protocol::OrderReply>(request, status);
  reply.bytes = bytes.value;
  if (wire.send) wire.send(&reply, sizeof reply, -1);
}

}  // namespace

void Broker::on_order(const Wire& wire, unsigned uid, const protocol::Order& order) {
  const std::uint32_t request = order.header.request;
  const Session* session = find(SessionId{order.session});
  const bool is_owner = session != nullptr && session->uid == uid;
  if (!may_order_anything(uid) && (!is_owner || order.verb == Verb::reload)) return answer(wire, request, Status::refused);
  if (order.session != 0 && session == nullptr) return answer(wire, request, Status::no_device);
  if (order.device != UINT32_MAX && order.device >= devices_.size()) return answer(wire, request, Status::no_device);
  log::info(text("order of user ", uid, ": ", name_of(order.verb), order.session == 0 ? "" : ", session ",
                 order.session == 0 ? std::string{} : std::to_string(order.session)));
  switch (order.verb) {
    case Verb::trim: return begin_trim(wire, order, may_order_anything(uid));
    case Verb::limit: return answer(wire, request, order_limit(order, uid));
    case Verb::reload: return answer(wire, request, reload && reload() ? Status::ok : Status::malformed);
  }
  answer(wire, request, Status::unsupported);
}

// For all devices: which of them a program uses is its own choice.
Status Broker::order_limit(const protocol::Order& order, unsigned uid) {
  Session* session = find(SessionId{order.session});
  if (session == nullptr) return Status::no_device;
  if (order.bytes == UINT64_MAX) {
    if (!may_order_anything(uid)) return Status::refused;  // it may have been an admin's
    session->ordered_limit.reset();
  } else {
    Bytes limit{order.bytes};
    if (!may_order_anything(uid))
      for (const auto& device : devices_) limit = std::min(limit, device->limit_of(session->id));
    session->ordered_limit = limit;
  }
  for (const auto& device : devices_)
    if (session->sources[device->facts().index] != protocol::Source::none)
      device->set_limits(session->id, limits_for(*session, *device));
  return Status::ok;
}

// Sessions first: what they give back is idle in the pool then.
void Broker::begin_trim(const Wire& wire, const protocol::Order& order, bool to_driver) {
  Trim trim{wire, order.header.request, order.device, to_driver, {}};
  for (const auto& device : devices_) {
    const std::uint32_t index = device->facts().index;
    if (!call_after || (order.device != UINT32_MAX && order.device != index)) continue;
    for (const auto& [holder, idle] : idle_holders(*device, SessionId{})) {
      if (order.session != 0 && static_cast<std::uint64_t>(holder->id) != order.session) continue;
      const std::uint32_t number = next_recall_++;
      ++recalls_;
      holder->line->recall(number, index, idle);
      trim.unanswered.push_back(number);
    }
  }
  const std::uint64_t id = next_trim_++;
  const bool waits = !trim.unanswered.empty();
  trims_.emplace(id, std::move(trim));
  if (!waits) return end_trim(id);
  call_after(Device::kRecallTime, [this, id] { end_trim(id); });
}

void Broker::note_recalled(std::uint32_t number) {
  for (auto& [id, trim] : trims_) {
    if (std::erase(trim.unanswered, number) == 0 || !trim.unanswered.empty()) continue;
    return end_trim(id);
  }
}

void Broker::end_trim(std::uint64_t id) {
  const auto at = trims_.find(id);
  if (at == trims_.end()) return;
  const Trim trim = std::move(at->second);
  trims_.erase(at);
  if (!trim.to_driver) return answer(trim.wire, trim.request, Status::ok, Bytes{UINT64_MAX});
  const auto sum = std::make_shared<Bytes>();
  const auto left = std::make_shared<std::size_t>(1);
  const auto done = [wire = trim.wire, request = trim.request, sum, left](Bytes bytes) {
    *sum += bytes;
    if (--*left == 0) answer(wire, request, Status::ok, *sum);
  };
  for (const auto& device : devices_) {
    if (trim.device != UINT32_MAX && trim.device != device->facts().index) continue;
    ++*left;
    device->trim(done);
  }
  done({});
}

}  // namespace vramd
