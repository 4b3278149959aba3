// Who is at the other end of a socket: what the kernel says, never what the peer says.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "allocator/base/unique_fd.hpp"
#include "daemon/cgroup.hpp"
#include "daemon/trouble.hpp"
#include "daemon/users.hpp"

namespace vramd {

struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  UniqueFd pidfd;  // readable when the process has ended
  std::string user;
  std::vector<std::string> groups;
  std::string command;    // /proc/<pid>/comm
  std::string cgroup;     // full path
  std::string container;  // "host" or a name such as "docker-<id>"
};

// The process that connected `socket`. A process that has ended meanwhile, or that the daemon cannot see
// (another pid namespace), is a Trouble.
Try<Peer> identify(int socket, Users& users);

}  // namespace vramd
