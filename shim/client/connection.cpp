#include "shim/client/connection.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocator/base/clock.hpp"
#include "shim/client/log.hpp"

namespace vramd::shim {
namespace {

// libc exports fstat() only since 2.33; older containers must be able to load us. Same structure on 64-bit Linux.
int file_status(int fd, struct stat& status) { return static_cast<int>(::syscall(SYS_fstat, fd, &status)); }

// Programs close(3), select() on small numbers and count descriptors: ours stay out of the way where there is room. Never 0 to
// 2, which are free in a program that was started without them: it would read, or print into, our socket. -1 if there is no
// other.
int move_up(int fd) {
  for (const int lowest : {512, 100, 3}) {
    if (fd >= lowest) return fd;
    const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (moved < 0) continue;
    protocol::close_descriptor(fd);
    return moved;
  }
  protocol::close_descriptor(fd);
  return -1;
}

}  // namespace

Result<protocol::HelloReply> Connection::open(const char* path, protocol::Hello hello, Nanos deadline) {
  auto connected = protocol::connect_socket(path);
  if (!connected) return tl::unexpected(connected.error());
  const int fd = move_up(*connected);
  if (fd < 0) return failure(ErrorCode::system, "no descriptor is free", EMFILE);
  struct stat status {};
  if (file_status(fd, status) != 0) {
    protocol::close_descriptor(fd);
    return failure(ErrorCode::system, "fstat", errno);
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  __atomic_store_n(&socket_, fd, __ATOMIC_RELAXED);
  protocol::HelloReply reply;
  if (auto done = exchange(hello.header, &hello, sizeof hello, reply.kType, &reply, sizeof reply, nullptr, deadline); !done)
    return tl::unexpected(done.error());
  if (reply.header.status != protocol::Status::ok) (void)lose({});
  return reply;
}

bool Connection::still_ours() const {
  struct stat status {};
  return file_status(socket_, status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

tl::unexpected<Error> Connection::lose(Error why) {
  // A descriptor that is no longer ours belongs to the program now and stays open.
  if (socket_ >= 0 && still_ours()) protocol::close_descriptor(socket_);
  __atomic_store_n(&socket_, -1, __ATOMIC_RELAXED);
  return tl::unexpected(why);
}

Result<void> Connection::exchange(protocol::Header& header, const void* request, std::size_t request_size,
                                  protocol::Type reply_type, void* reply, std::size_t reply_size, int* fd, Nanos patience) {
  if (fd != nullptr) *fd = -1;
  if (socket_ < 0) return failure(ErrorCode::disconnected, "no daemon");
  if (!still_ours()) return lose({ErrorCode::disconnected, 0, "the program closed our descriptor"});
  header.request = next_request_++;
  const Nanos deadline = MonotonicClock{}.now() + patience;
  if (auto sent = send(request, request_size, deadline); !sent) return lose(sent.error());
  alignas(8) unsigned char buffer[protocol::kMaxMessage];
  for (;;) {
    if (auto ready = protocol::wait_readable(socket_, deadline); !ready) return lose(ready.error());
    auto packet = protocol::receive_packet(socket_, buffer, sizeof buffer);
    if (!packet) {
      if (packet.error().code == ErrorCode::timeout) continue;
      return lose(packet.error());
    }
    protocol::Header got;
    const bool usable = packet->size != 0 && !packet->truncated && protocol::decode_header(buffer, packet->size, got) &&
                        got.request == header.request;
    if (!usable) {
      protocol::close_all(*packet);
      return lose({packet->size == 0 ? ErrorCode::disconnected : ErrorCode::protocol, 0, "reply"});
    }
    // A refusal may come as the bare error_reply; its status is all there is to know.
    if (got.type == protocol::Type::error_reply) {
      protocol::close_all(*packet);
      memset(reply, 0, reply_size);
      memcpy(reply, &got, sizeof got);
      return {};
    }
    if (got.type != reply_type || packet->size < reply_size || packet->fd_count > (fd != nullptr ? 1u : 0u)) {
      protocol::close_all(*packet);
      return lose({ErrorCode::protocol, 0, "reply of the wrong type or size"});
    }
    memcpy(reply, buffer, reply_size);
    if (packet->fd_count == 1) *fd = packet->fds[0];
    return {};
  }
}

// A full socket is no dead daemon: many packets may have gone out before it got the processor.
Result<void> Connection::send(const void* message, std::size_t size, Nanos deadline) {
  for (;;) {
    auto sent = protocol::send_packet(socket_, message, size);
    if (sent || sent.error().code != ErrorCode::timeout) return sent;
    if (auto room = protocol::wait_writable(socket_, deadline); !room) return room;
  }
}

void Connection::send_only(const void* message, std::size_t size, bool last) {
  if (socket_ < 0) return;
  if (!still_ours()) {
    (void)lose({ErrorCode::disconnected, 0, "the program closed our descriptor"});
    return;
  }
  const auto sent = send(message, size, MonotonicClock{}.now() + kDeadline);
  if (!sent || last) (void)lose({});
}

}  // namespace vramd::shim
