// A daemon with a simulated GPU for one bench, and sessions that speak to it without shim.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "allocator/base/unique_fd.hpp"
#include "allocator/protocol/messages.hpp"
#include "allocator/protocol/socket.hpp"

namespace vramd::bench {

inline constexpr const char* kProfile = "a100-80g";  // chunks that nobody touches take no memory of the host

void wait_for_end(pid_t child);

class Daemon {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;
  // Throws when it does not come up.
  Daemon(const std::string& build, const std::string& policy, const Variables& environment);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  const std::string& socket() const { return socket_; }
  const protocol::Uuid& gpu() const { return gpu_; }
  int driver_version() const { return driver_version_; }
  pid_t pid() const { return pid_; }

 private:
  void start(const std::string& build, const Variables& environment);
  bool ask();

  std::string folder_, socket_;
  pid_t pid_ = -1;
  protocol::Uuid gpu_;
  int driver_version_ = 0;
};

class SessionClient {
 public:
  explicit SessionClient(const Daemon& daemon);

  // A chunk, its descriptor received and closed, acknowledged and given back: nanoseconds. Throws when it is refused.
  double grant_and_return(std::uint64_t bytes);
  // Only taken; the chunk's number.
  std::uint64_t take(std::uint64_t bytes);
  void give_back(const std::uint64_t* chunks, std::uint32_t count);
  protocol::MemoryInfoReply memory_info();

 protected:
  template <class Reply, class Request>
  Reply call(Request request);

  UniqueFd socket_;
  std::uint32_t request_ = 0;
};

// Has asked for as much as the daemon takes, and never reads an answer.
class DeafClient : public SessionClient {
 public:
  explicit DeafClient(const Daemon& daemon);
};

}  // namespace vramd::bench
