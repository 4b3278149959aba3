#include "daemon/connection.hpp"

#include <errno.h>
#include <fcntl.h>

#include <boost/asio/post.hpp>
#include <chrono>

#include "allocator/protocol/socket.hpp"

namespace vramd {
namespace {

// With this many answers waiting, nothing more is read from the peer.
constexpr std::size_t kEnoughQueued = 16;
// What may still be queued then: the answers to requests that were read before.
constexpr std::size_t kMaxQueued = kEnoughQueued + 2 * protocol::kMaxUnacknowledged;
constexpr auto kDeafTime = std::chrono::seconds(2);
// Packets read before others have their turn.
constexpr int kBurst = 16;
// More than a socket's buffer holds of our messages.
constexpr int kMaxDrained = 1024;
constexpr auto kRetry = std::chrono::milliseconds(10);

}  // namespace

Connection::Connection(boost::asio::io_context& loop, UniqueFd socket)
    : socket_(loop, socket.release()), retry_(loop), deaf_(loop) {}

void Connection::start(Owner owner) {
  owner_ = std::move(owner);
  wait_readable();
}

void Connection::wait_readable() {
  if (closed_ || reading_ || queue_.size() >= kEnoughQueued || owner_.saturated()) return;
  reading_ = true;
  socket_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       self->reading_ = false;
                       if (!error && !self->closed_) self->read_some();
                     });
}

void Connection::read_some() {
  for (int i = 0; i < kBurst && queue_.size() < kEnoughQueued && !owner_.saturated(); ++i)
    if (const Read read = read_one(); read == Read::over)
      return;
    else if (read == Read::nothing)
      break;
  wait_readable();
}

Connection::Read Connection::read_one() {
  if (closed_) return Read::over;
  unsigned char buffer[protocol::kMaxMessage];
  auto received = protocol::receive_packet(socket_.native_handle(), buffer, sizeof buffer);
  if (!received) {
    if (received.error().code == ErrorCode::timeout) return Read::nothing;
    close(nullptr);
    return Read::over;
  }
  const bool brought_fds = received->fd_count != 0;
  protocol::close_all(*received);
  const char* fault = nullptr;
  if (received->size == 0 && !brought_fds) {
    // An end of file, or an empty packet of a peer that has more to say: neither is a message.
    close(nullptr);
    return Read::over;
  }
  if (brought_fds)
    fault = "unexpected_descriptor";
  else if (received->truncated)
    fault = "malformed";
  else
    fault = owner_.packet(buffer, received->size);
  if (fault == nullptr) return closed_ ? Read::over : Read::more;
  close(fault);
  return Read::over;
}

void Connection::resume() { wait_readable(); }

void Connection::drain() {
  // Bounded: a child of the dead process may have inherited the socket and go on sending.
  for (int i = 0; i < kMaxDrained && read_one() == Read::more; ++i) {
  }
}

void Connection::send(const void* packet, std::size_t size, int fd) {
  if (closed_) return;
  int error = 0;
  if (queue_.empty() && try_send(packet, size, fd, error)) return;
  if (closed_) return;
  if (queue_.size() >= kMaxQueued) return close("deaf");
  const auto* bytes = static_cast<const unsigned char*>(packet);
  UniqueFd copy(fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (fd >= 0 && !copy) return close("no_descriptors");
  if (queue_.empty()) expect_progress();
  queue_.push_back({{bytes, bytes + size}, std::move(copy)});
  wait_writable(error);
}

// False: not now, or closed.
bool Connection::try_send(const void* packet, std::size_t size, int fd, int& error) {
  const auto sent = protocol::send_packet(socket_.native_handle(), packet, size, fd < 0 ? nullptr : &fd, fd < 0 ? 0 : 1);
  if (sent) return true;
  error = sent.error().detail;
  if (sent.error().code != ErrorCode::timeout) close(nullptr);
  return false;
}

void Connection::wait_writable(int error) {
  if (closed_ || writing_) return;
  writing_ = true;
  const auto again = [self = shared_from_this()](const boost::system::error_code& failed) {
    self->writing_ = false;
    if (!failed && !self->closed_) self->flush();
  };
  if (error == EAGAIN) return socket_.async_wait(boost::asio::posix::descriptor_base::wait_write, again);
  // Too many descriptors in flight (ETOOMANYREFS): the socket itself is writable, so only time tells.
  retry_.expires_after(kRetry);
  retry_.async_wait(again);
}

void Connection::flush() {
  while (!queue_.empty()) {
    const Queued& next = queue_.front();
    int error = 0;
    if (!try_send(next.packet.data(), next.packet.size(), next.fd.get(), error)) return wait_writable(error);
    queue_.pop_front();
    expect_progress();
  }
  deaf_.cancel();
  wait_readable();
}

void Connection::expect_progress() {
  deaf_.expires_after(kDeafTime);
  deaf_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
    if (!cancelled && !self->queue_.empty()) self->close("deaf");
  });
}

void Connection::close(const char* reason) {
  if (closed_) return;
  closed_ = true;
  boost::system::error_code ignored;
  socket_.close(ignored);
  retry_.cancel();
  deaf_.cancel();
  queue_.clear();
  // From the loop, never from inside a send(): whoever sends may be in the middle of its books.
  boost::asio::post(socket_.get_executor(), [self = shared_from_this(), reason] {
    if (self->owner_.closed) self->owner_.closed(reason);
    self->owner_ = {};  // may hold the last references to us
  });
}

}  // namespace vramd
