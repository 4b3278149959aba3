#include "daemon/sealed.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace vramd {

Result<UniqueFd> sealed_memory(const char* name, std::string_view content) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return failure(ErrorCode::system, "memfd_create", errno);
  while (!content.empty()) {
    const ssize_t wrote = ::write(fd.get(), content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return failure(ErrorCode::system, "write to a memfd", errno);
    content.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return failure(ErrorCode::system, "lseek in a memfd", errno);
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
    return failure(ErrorCode::system, "sealing a memfd", errno);
  return fd;
}

}  // namespace vramd
