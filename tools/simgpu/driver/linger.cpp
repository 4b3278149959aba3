#include "tools/simgpu/driver/linger.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "tools/simgpu/driver/control.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {
namespace {

constexpr unsigned char kScribble = 0xEE;
constexpr std::size_t kScribbled = 64;  // bytes at the start of each chunk

void sleep_millisecond() {
  const timespec time{0, 1'000'000};
  ::nanosleep(&time, nullptr);
}

[[noreturn]] void haunt(Control& control, int victim) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  for (int fd = 0; fd < 65536; ++fd) {  // whatever the program has open is not ours to keep
    if (fd != victim && fd != control.life_descriptor() && !control.files().owns(fd)) ::close(fd);
  }
  pollfd end{victim, POLLIN, 0};
  while (::poll(&end, 1, -1) < 0) {
  }
  if (control.running().load() == 0) ::_exit(0);
  for (std::uint64_t i = 0; i < settings().linger_ms; ++i) {
    for (const ChunkInfo& chunk : control.held_by(control.own_slot())) {
      control.files().fill(chunk.place, chunk.offset, kScribbled, kScribble);
    }
    sleep_millisecond();
  }
  ::_exit(0);
}

}  // namespace

void keep_working_after_death(Control& control) {
  if (settings().linger_ms == 0) return;
  const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  // Twice, so that the program has no child that it didn't make; it sees one SIGCHLD now. Where it is the reaper of orphans
  // (PR_SET_CHILD_SUBREAPER, the first process of a container) it meets the second one when that ends.
  const pid_t between = self < 0 ? -1 : ::fork();
  if (between == 0) {
    if (::fork() == 0) haunt(control, self);
    ::_exit(0);
  }
  if (between < 0) {
    log_line("simgpu: SIM_LINGER_MS: no process could be made; nothing will linger");
  } else {
    ::waitpid(between, nullptr, 0);
  }
  if (self >= 0) ::close(self);
}

}  // namespace simgpu
