#include "daemon/server.hpp"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <set>

#include "allocator/protocol/socket.hpp"
#include "daemon/connection.hpp"
#include "daemon/log.hpp"
#include "daemon/text.hpp"

namespace vramd {
namespace {

namespace asio = boost::asio;

// Connections of all kinds, and of one user: more than sessions, so that a refusal can be told and admins get
// in.
constexpr std::size_t kMaxConnections = 512;
constexpr std::size_t kMaxConnectionsPerUser = 128;
constexpr auto kHelloTime = std::chrono::seconds(5);
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

const char* kDropReasons[] = {"malformed",  "deaf",         "no_hello",      "too_many", "unexpected_descriptor",
                              "violations", "unidentified", "no_descriptors"};

}  // namespace

class Server::Impl : public std::enable_shared_from_this<Server::Impl> {
 public:
  Impl(asio::io_context& loop, int listening, Broker& broker, Users& users)
      : loop_(loop), listening_(loop, listening), pause_(loop), broker_(broker), users_(users) {
    for (const char* reason : kDropReasons) dropped_[reason] = 0;
  }

  void start() { accept(); }
  void stop();
  const std::map<std::string, std::uint64_t>& dropped() const { return dropped_; }

 private:
  // A connection and who it is. Before hello it is neither session nor admin.
  struct Visitor {
    explicit Visitor(asio::io_context& loop) : hello_timer(loop) {}
    std::shared_ptr<Connection> connection;
    asio::steady_timer hello_timer;
    unsigned uid = 0;
    bool greeted = false;
    SessionId session{};                                        // none for admins
    std::unique_ptr<asio::posix::stream_descriptor> unwatched;  // the pidfd, until there is a session to watch
    Peer peer;
  };
  using VisitorPtr = std::shared_ptr<Visitor>;

  void accept();
  void accept_some();
  void admit(UniqueFd socket);
  const char* on_packet(const VisitorPtr& visitor, const void* packet, std::size_t size);
  const char* on_hello(const VisitorPtr& visitor, const void* packet, std::size_t size);
  bool send_with_line(Connection& connection, Broker::Greeting& greeting);
  void on_closed(const VisitorPtr& visitor, const char* reason);
  Wire wire_to(const VisitorPtr& visitor);
  void watch(const VisitorPtr& visitor);
  void count_drop(const char* reason);

  asio::io_context& loop_;
  asio::posix::stream_descriptor listening_;
  asio::steady_timer pause_;
  Broker& broker_;
  Users& users_;
  bool stopped_ = false;
  std::set<VisitorPtr> visitors_;
  std::map<SessionId, std::shared_ptr<asio::posix::stream_descriptor>> watches_;  // pidfds
  std::map<std::string, std::uint64_t> dropped_;
};

void Server::Impl::accept() {
  if (stopped_) return;
  listening_.async_wait(asio::posix::descriptor_base::wait_read,
                        [self = shared_from_this()](const boost::system::error_code& error) {
                          if (!error && !self->stopped_) self->accept_some();
                        });
}

void Server::Impl::accept_some() {
  for (int i = 0; i < 16; ++i) {
    UniqueFd socket(::accept4(listening_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) break;
      // Out of descriptors or memory: the peer stays in the queue, and waiting for it would spin.
      log::error(text("accept: ", ::strerror(errno)));
      pause_.expires_after(kAcceptPause);
      pause_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
        if (!error) self->accept();
      });
      return;
    }
    admit(std::move(socket));
  }
  accept();
}

void Server::Impl::admit(UniqueFd socket) {
  auto peer = identify(socket.get(), users_);
  if (!peer) {
    log::warning(text("connection refused: ", peer.error().message));
    return count_drop("unidentified");
  }
  std::size_t same_user = 0;
  for (const VisitorPtr& other : visitors_) same_user += other->uid == peer->uid;
  if (visitors_.size() >= kMaxConnections || same_user >= kMaxConnectionsPerUser) return count_drop("too_many");

  const auto visitor = std::make_shared<Visitor>(loop_);
  visitor->uid = peer->uid;
  visitor->peer = std::move(*peer);
  visitor->connection = std::make_shared<Connection>(loop_, std::move(socket));
  visitors_.insert(visitor);
  visitor->hello_timer.expires_after(kHelloTime);
  visitor->hello_timer.async_wait([visitor](const boost::system::error_code& error) {
    if (!error && !visitor->greeted) visitor->connection->close("no_hello");
  });
  // Cycles of references are cut when the connection forgets its owner at its close.
  Connection::Owner owner;
  owner.packet = [self = shared_from_this(), visitor](const void* packet, std::size_t size) {
    return self->on_packet(visitor, packet, size);
  };
  owner.saturated = [self = shared_from_this(), visitor] {
    return visitor->session != SessionId{} && self->broker_.saturated(visitor->session);
  };
  owner.closed = [self = shared_from_this(), visitor](const char* reason) { self->on_closed(visitor, reason); };
  visitor->connection->start(std::move(owner));
}

Wire Server::Impl::wire_to(const VisitorPtr& visitor) {
  return {[weak = std::weak_ptr<Connection>(visitor->connection)](const void* packet, std::size_t size, int fd) {
    const auto connection = weak.lock();
    if (!connection) return;
    connection->send(packet, size, fd);
    connection->resume();  // an answer has gone out: perhaps the session may ask again
  }};
}

const char* Server::Impl::on_packet(const VisitorPtr& visitor, const void* packet, std::size_t size) {
  if (!visitor->greeted) return on_hello(visitor, packet, size);
  const Verdict verdict = visitor->session == SessionId{} ? broker_.admin_packet(wire_to(visitor), visitor->uid, packet, size)
                                                          : broker_.packet(visitor->session, packet, size);
  if (verdict.drop != nullptr) {
    // Best effort: tell a peer of ours what is wrong before the door closes.
    const auto reply = protocol::make<protocol::ErrorReply>(0, protocol::Status::malformed);
    visitor->connection->send(&reply, sizeof reply, -1);
  }
  return verdict.drop;
}

const char* Server::Impl::on_hello(const VisitorPtr& visitor, const void* packet, std::size_t size) {
  protocol::Hello hello;
  if (!protocol::decode(packet, size, hello)) return "malformed";
  Broker::Greeting greeting = broker_.hello(hello, visitor->peer, wire_to(visitor));
  const bool with_line = greeting.session != SessionId{} && (hello.features & protocol::kFeatureLine) != 0;
  if (!with_line || !send_with_line(*visitor->connection, greeting))
    visitor->connection->send(&greeting.reply, sizeof greeting.reply, -1);
  if (!greeting.keep) return greeting.reply.header.status == protocol::Status::too_many ? "too_many" : "malformed";
  visitor->greeted = true;
  visitor->hello_timer.cancel();
  visitor->session = greeting.session;
  if (greeting.session != SessionId{}) watch(visitor);
  return nullptr;
}

// False: nothing has been sent, and the session goes without.
bool Server::Impl::send_with_line(Connection& connection, Broker::Greeting& greeting) {
  auto made = make_line();
  if (!made) {
    log::warning(text("a session goes without line: ", made.error().what, ": ", ::strerror(made.error().detail)));
    return false;
  }
  const int fds[] = {made->session_socket.get(), made->page.get()};
  greeting.reply.features |= protocol::kFeatureLine;
  if (!protocol::send_message(connection.native(), greeting.reply, fds, 2)) {
    greeting.reply.features &= ~protocol::kFeatureLine;
    return false;
  }
  broker_.set_line(greeting.session, std::move(made->line));
  return true;
}

// Ends the session when its process ends: its socket may live on in a forked child.
void Server::Impl::watch(const VisitorPtr& visitor) {
  const SessionId session = visitor->session;
  const auto pidfd = std::make_shared<asio::posix::stream_descriptor>(loop_, visitor->peer.pidfd.release());
  watches_[session] = pidfd;
  pidfd->async_wait(asio::posix::descriptor_base::wait_read,
                    [self = shared_from_this(), session, pidfd,
                     weak = std::weak_ptr<Connection>(visitor->connection)](const boost::system::error_code& error) {
                      if (error || self->stopped_) return;
                      // What it gave back may still lie in the socket.
                      self->broker_.process_ended(session);
                      if (const auto connection = weak.lock()) {
                        connection->drain();
                        connection->close(nullptr);
                      }
                      self->watches_.erase(session);
                      self->broker_.end(session);
                    });
}

void Server::Impl::on_closed(const VisitorPtr& visitor, const char* reason) {
  visitor->hello_timer.cancel();
  visitors_.erase(visitor);
  if (reason != nullptr) {
    count_drop(reason);
    log::warning(text("connection of pid ", visitor->peer.pid, " (", visitor->peer.command, ", user ", visitor->peer.user,
                      ") dropped: ", reason));
  }
  if (stopped_ || visitor->session == SessionId{}) return;
  broker_.end(visitor->session);
  watches_.erase(visitor->session);
}

void Server::Impl::count_drop(const char* reason) { ++dropped_[reason]; }

void Server::Impl::stop() {
  if (stopped_) return;
  stopped_ = true;
  boost::system::error_code ignored;
  pause_.cancel();
  static_cast<void>(listening_.release());  // borrowed: its owner closes it
  for (const VisitorPtr& visitor : std::set<VisitorPtr>(visitors_)) visitor->connection->close(nullptr);
  for (const auto& [session, pidfd] : watches_) pidfd->close(ignored);
  watches_.clear();
}

Server::Server(boost::asio::io_context& loop, int listening, Broker& broker, Users& users)
    : impl_(std::make_shared<Impl>(loop, listening, broker, users)) {
  impl_->start();
}

Server::~Server() { impl_->stop(); }
void Server::stop() { impl_->stop(); }
const std::map<std::string, std::uint64_t>& Server::dropped() const { return impl_->dropped(); }

}  // namespace vramd
