#include "daemon/socket_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "allocator/protocol/socket.hpp"
#include "daemon/text.hpp"

namespace vramd {
namespace {

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Try<void> check_directory(const std::string& directory) {
  struct stat found {};
  if (::stat(directory.c_str(), &found) != 0) {
    const char* why = ::strerror(errno);
    return trouble(kExitUsage, text("socket directory ", directory, ": ", why, "; create it (mkdir -p ", directory,
                                    ") or choose another place with --socket PATH or, for a user's own daemon, by setting "
                                    "XDG_RUNTIME_DIR"));
  }
  if (!S_ISDIR(found.st_mode))
    return trouble(kExitUsage, text("socket directory ", directory,
                                    " is no directory; choose another place with "
                                    "--socket PATH"));
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    return trouble(kExitUsage, text("socket directory ", directory,
                                    " is not writable for this user; change its owner "
                                    "or choose another place with --socket PATH"));
  // Whoever may write there could put another socket into the place of ours.
  if ((found.st_mode & S_IWOTH) != 0 && (found.st_mode & S_ISVTX) == 0)
    return trouble(kExitUsage, text("socket directory ", directory,
                                    " is writable for everybody; take that away (chmod "
                                    "o-w ",
                                    directory, ") or choose another place with --socket PATH"));
  return {};
}

std::string pid_behind(int socket) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return "unknown";
  return text(who.pid);
}

Try<void> make_way(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return {};
  if (!S_ISSOCK(found.st_mode))
    return trouble(kExitUsage, text("socket ", path,
                                    ": there is a file that is no socket; remove it or choose another "
                                    "place with --socket PATH"));
  const auto live = protocol::connect_socket(path.c_str());
  if (live) {
    const UniqueFd connection(*live);
    return trouble(kExitUsage, text("socket ", path, ": a daemon answers there (pid ", pid_behind(*live),
                                    "); stop it, or choose another place with --socket PATH"));
  }
  if (live.error().detail != ECONNREFUSED)
    return trouble(kExitUsage, text("socket ", path, ": ", ::strerror(live.error().detail),
                                    "; is another daemon "
                                    "using it? Choose another place with --socket PATH"));
  if (::unlink(path.c_str()) != 0)
    return trouble(kExitUsage, text("cannot remove the stale socket ", path, ": ", ::strerror(errno)));
  return {};
}

}  // namespace

std::string default_socket_path() {
  const char* runtime = ::getenv("XDG_RUNTIME_DIR");
  if (::geteuid() != 0 && runtime != nullptr && *runtime != '\0') return text(runtime, "/vramd.sock");
  return "/run/vramd/vramd.sock";
}

Try<SocketFile> SocketFile::listen(const std::string& path) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof where.sun_path)
    return trouble(kExitUsage, text("socket path \"", path, "\": 1 to ", sizeof where.sun_path - 1,
                                    " bytes; choose a shorter one with --socket PATH"));
  ::memcpy(where.sun_path, path.c_str(), path.size() + 1);
  if (auto ok = check_directory(directory_of(path)); !ok) return tl::unexpected(ok.error());

  const std::string lock_path = path + ".lock";
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return trouble(kExitUsage, text("cannot open ", lock_path, ": ", ::strerror(errno)));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return trouble(kExitUsage, text("socket ", path, ": another vramd is running there (it holds ", lock_path,
                                    "); stop it, or choose another place with --socket PATH"));
  if (auto ok = make_way(path); !ok) return tl::unexpected(ok.error());

  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return trouble(kExitRuntime, text("socket: ", ::strerror(errno)));
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0)
    return trouble(kExitUsage, text("cannot bind ", path, ": ", ::strerror(errno)));
  if (::chmod(path.c_str(), 0666) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    return trouble(kExitRuntime, text("cannot listen on ", path, ": ", ::strerror(errno)));
  return SocketFile(std::move(lock), std::move(fd), path);
}

SocketFile::~SocketFile() {
  if (fd_) ::unlink(path_.c_str());  // ours: the lock is still held
}

}  // namespace vramd
