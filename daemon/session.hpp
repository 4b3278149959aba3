// One connected process, as the broker keeps it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "allocator/base/units.hpp"
#include "allocator/chunks/values.hpp"
#include "allocator/protocol/messages.hpp"
#include "daemon/line.hpp"
#include "daemon/rules.hpp"

namespace vramd {

// How the broker reaches a peer. `fd` is borrowed for the call; -1 = none.
struct Wire {
  std::function<void(const void* packet, std::size_t size, int fd)> send;
};

struct Session {
  SessionId id{};
  Wire wire;
  int pid = 0;
  unsigned uid = 0;
  Subject subject;
  chunks::DomainId domain{};
  protocol::Mode mode = protocol::Mode::unset;
  protocol::Priority wished_priority = protocol::Priority::unset;
  protocol::Priority priority = protocol::Priority::unset;
  Bytes wished_limit = chunks::kUnlimited;
  std::optional<Bytes> ordered_limit;  // by an admin, instead of the rule's
  // By the daemon's device index; `none` = the session does not see the device.
  std::array<protocol::Source, protocol::kMaxDevices> sources{};
  bool goodbye = false;
  bool process_ended = false;  // only what it said before still counts
  std::uint32_t waiting = 0;   // requests whose answer is still to come
  std::optional<Line> line;
  Nanos deaf_until{};            // it did not answer a recall in time: not asked before
  std::uint32_t violations = 0;  // messages that made no sense and did no harm
};

}  // namespace vramd
