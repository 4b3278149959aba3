#include "daemon/notify.hpp"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>

#include "allocator/base/clock.hpp"
#include "allocator/base/unique_fd.hpp"
#include "daemon/text.hpp"

namespace vramd {

void notify_service_manager(const std::string& state) {
  const char* path = ::getenv("NOTIFY_SOCKET");
  sockaddr_un where{};
  if (path == nullptr || (path[0] != '/' && path[0] != '@') || ::strlen(path) >= sizeof where.sun_path) return;
  where.sun_family = AF_UNIX;
  ::memcpy(where.sun_path, path, ::strlen(path));
  if (path[0] == '@') where.sun_path[0] = '\0';  // abstract
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + ::strlen(path));
  // Best effort: nothing would change if it failed.
  [[maybe_unused]] const ssize_t sent =
      ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&where), length);
}

std::string reloading_state() { return text("RELOADING=1\nMONOTONIC_USEC=", MonotonicClock{}.now().value / 1000); }

}  // namespace vramd
