#include "tools/vramctl/daemon.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "allocator/base/clock.hpp"
#include "allocator/base/unique_fd.hpp"
#include "allocator/protocol/messages.hpp"
#include "allocator/protocol/socket.hpp"

namespace vramd::ctl {
namespace {

using Kind = NoAnswer::Kind;

constexpr const char* kSystemSocket = "/run/vramd/vramd.sock";
constexpr std::uint64_t kMaxStatusBytes = 64ull << 20;

tl::unexpected<NoAnswer> no_answer(Kind kind, std::string what, std::string remedy) {
  return tl::unexpected(NoAnswer{kind, std::move(what), std::move(remedy)});
}

tl::unexpected<NoAnswer> not_connected(const std::string& path, const Error& error) {
  const std::string at = " at " + path;
  if (error.code == ErrorCode::invalid_argument)
    return no_answer(Kind::nobody, "the socket's path is too long: " + path, "use one of at most 107 bytes");
  if (error.detail == EACCES || error.detail == EPERM)
    return no_answer(Kind::denied, "no permission to connect" + at, "ask the administrator to add you to the socket's group");
  if (error.detail == EPROTOTYPE)
    return no_answer(Kind::nonsense, "another program listens" + at, "name vramd's socket with --socket");
  if (error.detail == EAGAIN)
    return no_answer(Kind::silent, "the daemon does not take connections" + at, "look at its log; restart it if it hangs");
  return no_answer(Kind::nobody, std::string("no daemon") + at + ": " + std::strerror(error.detail),
                   "start one with `vramd --socket " + path + "`");
}

std::string words(protocol::Status status) {
  switch (status) {
    case protocol::Status::version_mismatch: return "the daemon speaks another version of the protocol";
    case protocol::Status::refused: return "the daemon does not serve this user";
    case protocol::Status::too_many: return "the daemon has too many connections";
    case protocol::Status::unsupported: return "the daemon does not know the request";
    default: return "the daemon answered with status " + std::to_string(static_cast<std::uint32_t>(status));
  }
}

// One request and its reply; a descriptor that comes along is kept.
class Conversation {
 public:
  Conversation(int socket, Nanos patience) : socket_(socket), patience_(patience) {}

  template <class Reply, class Request>
  tl::expected<Reply, NoAnswer> ask(const Request& request, bool any_status = false) {
    if (!protocol::send_message(socket_.get(), request)) return gone();
    if (const auto ready = protocol::wait_readable(socket_.get(), MonotonicClock{}.now() + patience_); !ready)
      return no_answer(Kind::silent, "the daemon does not answer", "look at its log; restart it if it hangs");
    unsigned char packet[protocol::kMaxMessage];
    auto received = protocol::receive_packet(socket_.get(), packet, sizeof packet);
    if (!received || received->size == 0) return gone();
    if (received->fd_count == 1) {
      fd_.reset(received->fds[0]);
    } else {
      protocol::close_all(*received);
    }
    protocol::Header header;
    if (received->truncated || !protocol::decode_header(packet, received->size, header)) return nonsense();
    if (header.status != protocol::Status::ok && !(any_status && header.type == Reply::kType))
      return no_answer(Kind::refused, words(header.status), "use vramctl and vramd of the same version");
    Reply reply;
    if (!protocol::decode(packet, received->size, reply)) return nonsense();
    return reply;
  }

  UniqueFd take_fd() { return std::move(fd_); }

  uid_t peer() const {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return static_cast<uid_t>(-1);
    return credentials.uid;
  }

 private:
  static tl::unexpected<NoAnswer> gone() {
    return no_answer(Kind::silent, "the daemon closed the connection", "look at its log");
  }
  static tl::unexpected<NoAnswer> nonsense() {
    return no_answer(Kind::nonsense, "what listens there does not speak vramd's protocol", "name vramd's socket with --socket");
  }

  UniqueFd socket_, fd_;
  Nanos patience_;
};

tl::expected<std::string, NoAnswer> read_all(int fd, std::uint64_t bytes) {
  struct stat about {};
  const bool plausible = fd >= 0 && ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && bytes <= kMaxStatusBytes &&
                         static_cast<std::uint64_t>(about.st_size) >= bytes;
  if (!plausible) return no_answer(Kind::nonsense, "the daemon's status came without its text", "look at the daemon's log");
  std::string text(bytes, '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got = ::pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return no_answer(Kind::nonsense, "the daemon's status cannot be read", "look at the daemon's log");
    done += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace

bool DaemonAnswer::may_choose_libraries() const { return uid == 0 || uid == ::getuid(); }

// The same order as in the shim, so that vramctl and the sessions it starts talk to the same daemon.
std::string socket_path(const std::string& asked) {
  if (!asked.empty()) return asked;
  const char* named = std::getenv("VRAMD_SOCKET");
  if (named != nullptr && *named != '\0') return named;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime == nullptr || *runtime == '\0' || ::access(kSystemSocket, F_OK) == 0) return kSystemSocket;
  const std::string own = std::string(runtime) + "/vramd.sock";
  return ::access(own.c_str(), F_OK) == 0 ? own : kSystemSocket;
}

tl::expected<protocol::OrderReply, NoAnswer> order_daemon(const std::string& path, protocol::Order order, Nanos patience) {
  const auto socket = protocol::connect_socket(path.c_str());
  if (!socket) return not_connected(path, socket.error());
  Conversation conversation(*socket, patience);
  auto hello = protocol::make<protocol::Hello>(1);
  hello.role = protocol::Role::admin;
  if (const auto reply = conversation.ask<protocol::HelloReply>(hello); !reply) return tl::unexpected(reply.error());
  order.header.request = 2;
  return conversation.ask<protocol::OrderReply>(order, true);
}

tl::expected<DaemonAnswer, NoAnswer> ask_daemon(const std::string& path, Nanos patience) {
  const auto socket = protocol::connect_socket(path.c_str());
  if (!socket) return not_connected(path, socket.error());
  Conversation conversation(*socket, patience);
  auto hello = protocol::make<protocol::Hello>(1);
  hello.role = protocol::Role::admin;
  if (const auto reply = conversation.ask<protocol::HelloReply>(hello); !reply) return tl::unexpected(reply.error());
  const auto reply = conversation.ask<protocol::StatusReply>(protocol::make<protocol::StatusRequest>(2));
  if (!reply) return tl::unexpected(reply.error());
  const UniqueFd fd = conversation.take_fd();
  auto text = read_all(fd.get(), reply->bytes);
  if (!text) return tl::unexpected(text.error());
  return DaemonAnswer{std::move(*text), conversation.peer()};
}

}  // namespace vramd::ctl
