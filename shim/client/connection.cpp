#include "shim/client/connection.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocator/base/clock.hpp"
#include "shim/client/log.hpp"

namespace vramd::shim {
namespace {

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

void close_both(int (&fds)[2]) {
  for (int& fd : fds) {
    if (fd >= 0) protocol::close_descriptor(fd);
    fd = -1;
  }
}

}  // namespace

Result<protocol::HelloReply> Connection::open(const char* path, protocol::Hello hello, int (&line)[2], Nanos deadline) {
  line[0] = line[1] = -1;
  auto connected = protocol::connect_socket(path);
  if (!connected) return tl::unexpected(connected.error());
  const int fd = move_up(*connected);
  if (fd < 0) return failure(ErrorCode::system, "no descriptor is free", EMFILE);
  if (!identity_.take(fd)) {
    protocol::close_descriptor(fd);
    return failure(ErrorCode::system, "fstat", errno);
  }
  __atomic_store_n(&socket_, fd, __ATOMIC_RELAXED);
  protocol::HelloReply reply;
  const Expected expected{reply.kType, &reply, sizeof reply, line, 2};
  if (auto done = exchange(hello.header, &hello, sizeof hello, expected, deadline); !done) return tl::unexpected(done.error());
  if (line[0] >= 0) line[0] = move_up(line[0]);
  if (line[1] >= 0) line[1] = move_up(line[1]);
  if (line[0] < 0 || line[1] < 0) close_both(line);
  if (reply.header.status == protocol::Status::ok) return reply;
  close_both(line);
  (void)lose({});
  return reply;
}

tl::unexpected<Error> Connection::lose(Error why) {
  // A descriptor that is no longer ours belongs to the program now and stays open.
  if (socket_ >= 0 && identity_.still(socket_)) protocol::close_descriptor(socket_);
  __atomic_store_n(&socket_, -1, __ATOMIC_RELAXED);
  return tl::unexpected(why);
}

Result<void> Connection::exchange(protocol::Header& header, const void* request, std::size_t request_size,
                                  const Expected& expected, Nanos patience) {
  for (std::size_t i = 0; i < expected.most_fds; ++i) expected.fds[i] = -1;
  if (socket_ < 0) return failure(ErrorCode::disconnected, "no daemon");
  if (!identity_.still(socket_)) return lose({ErrorCode::disconnected, 0, "the program closed our descriptor"});
  header.request = next_request_++;
  const Nanos deadline = MonotonicClock{}.now() + patience;
  if (auto sent = send(request, request_size, deadline); !sent) return lose(sent.error());
  alignas(8) unsigned char buffer[protocol::kMaxMessage];
  for (;;) {
    if (auto ready = protocol::wait_readable(socket_, deadline); !ready) return lose(ready.error());
    // Again, since the wait was long: what is read from a descriptor of the program is lost to it.
    if (!identity_.still(socket_)) return lose({ErrorCode::disconnected, 0, "the program closed our descriptor"});
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
      memset(expected.reply, 0, expected.size);
      memcpy(expected.reply, &got, sizeof got);
      return {};
    }
    if (got.type != expected.type || packet->size < expected.size || packet->fd_count > expected.most_fds) {
      protocol::close_all(*packet);
      return lose({ErrorCode::protocol, 0, "reply of the wrong type or size"});
    }
    memcpy(expected.reply, buffer, expected.size);
    for (std::size_t i = 0; i < packet->fd_count; ++i) expected.fds[i] = packet->fds[i];
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
  if (!identity_.still(socket_)) {
    (void)lose({ErrorCode::disconnected, 0, "the program closed our descriptor"});
    return;
  }
  const auto sent = send(message, size, MonotonicClock{}.now() + kDeadline);
  if (!sent || last) (void)lose({});
}

}  // namespace vramd::shim
