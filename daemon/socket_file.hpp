// The listening socket in the file system: one daemon per path, a stale file is replaced, a live daemon
// never.
#pragma once

#include <string>

#include "allocator/base/unique_fd.hpp"
#include "daemon/trouble.hpp"

namespace vramd {

// /run/vramd/vramd.sock for root, else $XDG_RUNTIME_DIR/vramd.sock when that is set.
std::string default_socket_path();

// Listens while it lives; removes the file at the end. Sessions of any user may connect (mode 0666): who they
// are is the kernel's word, and what they may do is decided per user.
class SocketFile {
 public:
  static Try<SocketFile> listen(const std::string& path);

  SocketFile(SocketFile&&) = default;
  SocketFile& operator=(SocketFile&&) = delete;
  ~SocketFile();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  SocketFile(UniqueFd lock, UniqueFd fd, std::string path)
      : lock_(std::move(lock)), fd_(std::move(fd)), path_(std::move(path)) {}

  UniqueFd lock_;  // holds flock() on <path>.lock: two daemons that start at once cannot both find the file stale
  UniqueFd fd_;
  std::string path_;
};

}  // namespace vramd
