#include "daemon/peer.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/text.hpp"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5
#endif

namespace vramd {
namespace {

std::string read_file(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string content;
  char buffer[4096];
  while (fd && content.size() < (1u << 16)) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    content.append(buffer, static_cast<std::size_t>(got));
  }
  return content;
}

// SO_PEERPIDFD is bound to the process that connected. Older kernels only have its number, which may have
// been given to another process since: the owner of the number must then still be the peer's user.
UniqueFd open_pidfd(int socket, pid_t pid, uid_t uid) {
  int fd = -1;
  socklen_t size = sizeof fd;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) return UniqueFd(fd);
  if (errno == ESRCH || errno == EINVAL) return UniqueFd();  // the process has ended
  UniqueFd opened(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  struct stat owner {};
  if (!opened || ::stat(text("/proc/", pid).c_str(), &owner) != 0 || owner.st_uid != uid) return UniqueFd();
  return opened;
}

}  // namespace

Try<Peer> identify(int socket, Users& users) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
    return trouble(kExitRuntime, text("SO_PEERCRED: ", ::strerror(errno)));
  if (who.pid <= 0)
    return trouble(kExitRuntime,
                   "the peer is in a pid namespace that this daemon cannot see; "
                   "run vramd in the host's pid namespace (Kubernetes: hostPID)");
  Peer peer;
  peer.pid = who.pid;
  peer.uid = who.uid;
  peer.gid = who.gid;
  peer.pidfd = open_pidfd(socket, who.pid, who.uid);
  if (!peer.pidfd) return trouble(kExitRuntime, text("process ", who.pid, " has ended before it was identified"));
  ::fcntl(peer.pidfd.get(), F_SETFD, FD_CLOEXEC);
  const Users::User& user = users.find(who.uid, who.gid);
  peer.user = user.name;
  peer.groups = user.groups;
  const std::string proc = text("/proc/", who.pid);
  peer.command = read_file(proc + "/comm");
  while (!peer.command.empty() && peer.command.back() == '\n') peer.command.pop_back();
  CgroupPlace place = parse_cgroup(read_file(proc + "/cgroup"));
  peer.cgroup = std::move(place.path);
  peer.container = std::move(place.container);
  return peer;
}

}  // namespace vramd
