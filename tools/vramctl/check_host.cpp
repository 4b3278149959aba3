#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "allocator/base/unique_fd.hpp"
#include "tools/vramctl/checks.hpp"
#include "tools/vramctl/format.hpp"

namespace vramd::ctl {
namespace {

// A session keeps its descriptors above 512 and holds one per chunk while it is handed over.
constexpr rlim_t kFewestFiles = 1024;

CheckResult files_result() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return skipped("open files", std::strerror(errno));
  const auto text = [](rlim_t n) { return n == RLIM_INFINITY ? std::string("unlimited") : std::to_string(n); };
  const std::string found = "soft limit " + text(limit.rlim_cur) + ", hard limit " + text(limit.rlim_max);
  if (limit.rlim_max >= kFewestFiles) return ok("open files", found);
  return finding("open files", found, "raise it to at least 1024: ulimit -n, or LimitNOFILE= in the unit");
}

CheckResult kernel_result() {
  std::string missing;
  const auto need = [&](bool there, const char* name) {
    if (!there) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  need(static_cast<bool>(pidfd), "pidfd_open");
  const UniqueFd memfd(::memfd_create("vramctl-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  need(static_cast<bool>(memfd), "memfd_create");
  const long commands = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  need(commands >= 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0, "membarrier");
  if (missing.empty()) return ok("kernel", "pidfd_open, memfd_create and membarrier are there");
  return finding("kernel", "refuses " + missing, "use Linux 5.3 or newer, and let the container's seccomp profile pass them");
}

CheckResult shared_memory_result() {
  struct statvfs about {};
  if (::statvfs("/dev/shm", &about) != 0)
    return finding("/dev/shm", std::strerror(errno), "mount a tmpfs there; PyTorch's data loaders need it as well");
  if (::access("/dev/shm", W_OK) != 0) return finding("/dev/shm", "cannot be written by this user", "chmod 1777 /dev/shm");
  const std::uint64_t free = std::uint64_t{about.f_bavail} * about.f_frsize;
  return ok("/dev/shm", size_text(free) + " free");
}

CheckResult container_result() {
  const bool docker = ::access("/.dockerenv", F_OK) == 0;
  const bool podman = ::access("/run/.containerenv", F_OK) == 0;
  std::ifstream file("/proc/1/cgroup");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const bool cgroup = text.find("docker") != std::string::npos || text.find("kubepods") != std::string::npos ||
                      text.find("containerd") != std::string::npos || text.find("libpod") != std::string::npos;
  if (!docker && !podman && !cgroup) return ok("container", "none");
  return ok("container", "inside of one: the daemon's socket and libvramd.so must be mounted into it");
}

}  // namespace

void check_host(Results& results) {
  results.push_back(files_result());
  results.push_back(kernel_result());
  results.push_back(shared_memory_result());
  results.push_back(container_result());
}

}  // namespace vramd::ctl
