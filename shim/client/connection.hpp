// A connection to the daemon. Every call has a deadline; whatever goes wrong ends the connection, and the process goes on
// without a daemon until it opens another. For one thread at a time, but for connected().
#pragma once

#include <sys/types.h>

#include "allocator/protocol/socket.hpp"

namespace vramd::shim {

class Connection {
 public:
  static constexpr Nanos kDeadline = seconds(1);

  // Connects and says hello, after the connection before is over. A reply with a status other than ok is a refusal; the
  // connection is over then. Errors: disconnected (nobody listens), timeout, protocol, system.
  Result<protocol::HelloReply> open(const char* path, protocol::Hello hello, Nanos deadline = kDeadline);

  bool connected() const { return __atomic_load_n(&socket_, __ATOMIC_RELAXED) >= 0; }

  // Sends a request and waits for its reply. `fd`, if not null, receives the reply's descriptor or -1. A reply with a
  // status other than ok is a value, not an error. Errors: disconnected, timeout, protocol, system; all end the connection.
  template <class Reply, class Request>
  Result<Reply> call(Request request, int* fd = nullptr) {
    Reply reply;
    if (auto done = exchange(request.header, &request, sizeof request, Reply::kType, &reply, sizeof reply, fd, kDeadline);
        !done)
      return tl::unexpected(done.error());
    return reply;
  }

  // Sends a message that has no reply. Lost if the connection is gone.
  template <class Message>
  void post(const Message& message) {
    send_only(&message, sizeof message, false);
  }
  // The same, and ends the connection.
  template <class Message>
  void post_last(const Message& message) {
    send_only(&message, sizeof message, true);
  }

 private:
  Result<void> exchange(protocol::Header& header, const void* request, std::size_t request_size, protocol::Type reply_type,
                        void* reply, std::size_t reply_size, int* fd, Nanos patience);
  Result<void> send(const void* message, std::size_t size, Nanos deadline);
  void send_only(const void* message, std::size_t size, bool last);
  bool still_ours() const;
  tl::unexpected<Error> lose(Error why);

  int socket_ = -1;
  dev_t device_ = 0;  // identity of the socket's file: the program may have closed our descriptor and reused its number
  ino_t inode_ = 0;
  std::uint32_t next_request_ = 1;
};

}  // namespace vramd::shim
