#include "allocator/protocol/socket.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "allocator/base/clock.hpp"

namespace vramd::protocol {
namespace {

// System calls by number: libc's functions are cancellation points, and a thread of the program that is cancelled in one of
// ours would take the connection's lock with it.
long send_message(int socket, const msghdr* message, int flags) { return ::syscall(SYS_sendmsg, socket, message, flags); }
long receive_message(int socket, msghdr* message, int flags) { return ::syscall(SYS_recvmsg, socket, message, flags); }

Result<void> wait_for(int socket, short events, Nanos deadline) {
  for (;;) {
    const Nanos left = deadline - MonotonicClock{}.now();
    // Looked at once more when the time is up: a process that was stopped has not seen what came meanwhile. Rounded up: it
    // must not spin through the last millisecond.
    const auto timeout = left.value <= 0 ? 0 : static_cast<int>((left.value + 999'999) / 1'000'000);
    pollfd item{socket, events, 0};
    const long ready = ::syscall(SYS_poll, &item, 1, timeout);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return failure(ErrorCode::system, "poll", errno);
    if (timeout == 0) return failure(ErrorCode::timeout, "wait: deadline passed");
  }
}

}  // namespace

void close_descriptor(int fd) { (void)::syscall(SYS_close, fd); }

Result<void> send_packet(int socket, const void* data, std::size_t size, const int* fds, std::size_t fd_count) {
  if (fd_count > kMaxChunksPerMessage) return failure(ErrorCode::invalid_argument, "send: too many descriptors");
  iovec part{const_cast<void*>(data), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxChunksPerMessage)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd_count != 0) {
    memset(control, 0, sizeof control);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
    memcpy(CMSG_DATA(header), fds, sizeof(int) * fd_count);
  }
  for (;;) {
    const long sent = send_message(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return {};
    switch (errno) {
      case EINTR: continue;
      case EAGAIN:
      case ENOBUFS:
      case ETOOMANYREFS: return failure(ErrorCode::timeout, "send: the peer does not read", errno);
      case EPIPE:
      case ECONNRESET:
      case ENOTCONN: return failure(ErrorCode::disconnected, "send", errno);
      default: return failure(ErrorCode::system, "send", errno);
    }
  }
}

Result<Received> receive_packet(int socket, void* buffer, std::size_t capacity) {
  iovec part{buffer, capacity};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxChunksPerMessage)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  long got;
  do {
    got = receive_message(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    if (errno == EAGAIN) return failure(ErrorCode::timeout, "receive: nothing there");
    if (errno == ECONNRESET) return failure(ErrorCode::disconnected, "receive", errno);
    return failure(ErrorCode::system, "receive", errno);
  }
  Received packet;
  packet.size = static_cast<std::size_t>(got);
  packet.truncated = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      if (packet.fd_count < kMaxChunksPerMessage) {
        packet.fds[packet.fd_count++] = fd;
      } else {
        close_descriptor(fd);
        packet.truncated = true;
      }
    }
  }
  return packet;
}

Result<void> wait_readable(int socket, Nanos deadline) { return wait_for(socket, POLLIN, deadline); }
Result<void> wait_writable(int socket, Nanos deadline) { return wait_for(socket, POLLOUT, deadline); }

void close_all(Received& packet) {
  for (std::size_t i = 0; i < packet.fd_count; ++i) close_descriptor(packet.fds[i]);
  packet.fd_count = 0;
}

Result<int> connect_socket(const char* path) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  const std::size_t length = strlen(path);
  if (length == 0 || length >= sizeof where.sun_path)
    return failure(ErrorCode::invalid_argument, "socket path: 1 to 107 bytes");
  memcpy(where.sun_path, path, length + 1);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return failure(ErrorCode::system, "socket", errno);
  if (::syscall(SYS_connect, fd, &where, sizeof where) != 0) {
    const int why = errno;
    close_descriptor(fd);
    const bool nobody = why == ENOENT || why == ECONNREFUSED || why == EAGAIN;
    return failure(nobody ? ErrorCode::disconnected : ErrorCode::system, "connect", why);
  }
  return fd;
}

}  // namespace vramd::protocol
