// Packets with descriptors over an AF_UNIX SEQPACKET socket. Thin, retrying EINTR, and honest about truncation.
#pragma once

#include <cstddef>

#include "allocator/base/result.hpp"
#include "allocator/base/units.hpp"
#include "allocator/protocol/messages.hpp"

namespace vramd::protocol {

struct Received {
  std::size_t size = 0;           // 0 = the peer closed
  int fds[kMaxChunksPerMessage];  // the receiver owns them; opened close-on-exec
  std::size_t fd_count = 0;
  bool truncated = false;  // packet or descriptors did not fit (MSG_TRUNC, MSG_CTRUNC): what arrived is not to be used
};

// Sends one packet with up to kMaxChunksPerMessage descriptors. Never blocks and never raises SIGPIPE.
// Errors: timeout when the socket's buffer is full (EAGAIN) or too many descriptors are in flight (ETOOMANYREFS),
// disconnected when the peer is gone, system otherwise.
Result<void> send_packet(int socket, const void* data, std::size_t size, const int* fds = nullptr, std::size_t fd_count = 0);

template <class M>
Result<void> send_message(int socket, const M& message, const int* fds = nullptr, std::size_t fd_count = 0) {
  return send_packet(socket, &message, sizeof message, fds, fd_count);
}

// Receives one packet if there is one: never blocks. Errors: timeout when there is none, disconnected, system.
Result<Received> receive_packet(int socket, void* buffer, std::size_t capacity);

// Waits until the socket is readable, or has room for a packet, or `deadline` (CLOCK_MONOTONIC) has passed. Errors: timeout,
// system.
Result<void> wait_readable(int socket, Nanos deadline);
Result<void> wait_writable(int socket, Nanos deadline);

// close(), but no cancellation point.
void close_descriptor(int fd);

// Closes every descriptor of a packet that is not to be used.
void close_all(Received& packet);

// Connects to a daemon's socket; the descriptor is non-blocking and close-on-exec. Errors: invalid_argument when the
// path does not fit sockaddr_un (107 bytes), disconnected when nobody listens, system otherwise.
Result<int> connect_socket(const char* path);

}  // namespace vramd::protocol
