// A connection to the daemon. Every call has a deadline; whatever goes wrong ends the connection, and the process goes on
// without a daemon until it opens another. For one thread at a time, but for connected().
#pragma once

#include <sys/types.h>

#include "allocator/protocol/socket.hpp"
#include "shim/client/line.hpp"

namespace vramd::shim {

class Connection {
 public:
  static constexpr Nanos kDeadline = seconds(1);

  // Connects and says hello, after the connection before is over. A reply with a status other than ok is a refusal; the
  // connection is over then. `line`: where the descriptors of kFeatureLine go, {-1, -1} when none came; the caller owns them.
  // Errors: disconnected (nobody listens), timeout, protocol, system.
  Result<protocol::HelloReply> open(const char* path, protocol::Hello hello, int (&line)[2], Nanos deadline = kDeadline);

  bool connected() const { return __atomic_load_n(&socket_, __ATOMIC_RELAXED) >= 0; }

  // Sends a request and waits for its reply. `fd`, if not null, receives the reply's descriptor or -1. A reply with a
  // status other than ok is a value, not an error. Errors: disconnected, timeout, protocol, system; all end the connection.
  template <class Reply, class Request>
  Result<Reply> call(Request request, int* fd = nullptr) {
    Reply reply;
    const Expected expected{Reply::kType, &reply, sizeof reply, fd, fd == nullptr ? 0u : 1u};
    if (auto done = exchange(request.header, &request, sizeof request, expected, kDeadline); !done)
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
  struct Expected {
    protocol::Type type;
    void* reply;
    std::size_t size;
    int* fds;  // set to -1 where none came
    std::size_t most_fds;
  };
  Result<void> exchange(protocol::Header& header, const void* request, std::size_t request_size, const Expected& expected,
                        Nanos patience);
  Result<void> send(const void* message, std::size_t size, Nanos deadline);
  void send_only(const void* message, std::size_t size, bool last);
  tl::unexpected<Error> lose(Error why);

  int socket_ = -1;
  DescriptorIdentity identity_;
  std::uint32_t next_request_ = 1;
};

}  // namespace vramd::shim
