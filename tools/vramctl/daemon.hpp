// Asking the daemon: where its socket is, and its status as JSON text.
#pragma once

#include <sys/types.h>

#include <string>
#include <tl/expected.hpp>

#include "allocator/base/units.hpp"
#include "allocator/protocol/messages.hpp"

namespace vramd::ctl {

// The path that a session would use: `asked` (--socket), VRAMD_SOCKET, the system's, the user's.
std::string socket_path(const std::string& asked);

struct DaemonAnswer {
  std::string status;  // JSON text, unchecked
  uid_t uid = 0;       // whom the daemon runs as, by the kernel's word

  // Whether to believe it about library paths: only root's or this user's own daemon may choose what we load.
  bool may_choose_libraries() const;
};

struct NoAnswer {
  enum class Kind { nobody, denied, silent, refused, nonsense } kind;
  std::string what;    // "nobody listens on /run/vramd/vramd.sock"
  std::string remedy;  // what to do
};

// Waits at most `patience` for each reply. A status other than ok of an order's reply is a value.
tl::expected<protocol::OrderReply, NoAnswer> order_daemon(const std::string& socket, protocol::Order order,
                                                          Nanos patience = seconds(10));

// Waits at most `patience` for each reply.
tl::expected<DaemonAnswer, NoAnswer> ask_daemon(const std::string& socket, Nanos patience = seconds(3));

}  // namespace vramd::ctl
