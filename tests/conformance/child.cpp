#include "tests/conformance/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/conformance/gate.hpp"

namespace vramd::conformance {
namespace {

[[noreturn]] void become(const char* name, int device, int record) {
  ::setpgid(0, 0);  // what the case starts ends with it
  const int nowhere = ::open("/dev/null", O_WRONLY);
  if (nowhere >= 0) {  // the driver's own words would drown the summary
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
  }
  char device_text[16], record_text[16];
  std::snprintf(device_text, sizeof device_text, "%d", device);
  std::snprintf(record_text, sizeof record_text, "%d", record);
  ::execl("/proc/self/exe", "vramd_conformance", "--case", name, "--device", device_text, "--child", record_text,
          static_cast<char*>(nullptr));
  ::_exit(127);
}

// False: nothing came in time.
bool receive(int fd, std::int64_t deadline, char* record, std::size_t size, std::size_t& used) {
  for (used = 0; used + 1 < size;) {
    const std::int64_t left = (deadline - now_nanos()) / 1'000'000;
    pollfd waiting{fd, POLLIN, 0};
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) == 0) return false;
    const ssize_t got = ::read(fd, record + used, size - 1 - used);
    if (got <= 0) break;
    used += static_cast<std::size_t>(got);
  }
  record[used] = '\0';
  return true;
}

// The record is "outcome\nobserved"; none: the process ended on its own.
bool understand(char* record, Verdict& verdict) {
  char* const line = std::strchr(record, '\n');
  if (!line) return false;
  *line = '\0';
  for (const Outcome outcome : {Outcome::as_expected, Outcome::differs, Outcome::not_available}) {
    if (std::strcmp(record, to_text(outcome)) != 0) continue;
    verdict.outcome = outcome;
    std::snprintf(verdict.observed, sizeof verdict.observed, "%s", line + 1);
    return true;
  }
  return false;
}

}  // namespace

void run_child(const char* name, int device, int limit_s, Verdict& verdict) {
  const std::int64_t begin = now_nanos();
  const std::int64_t deadline = begin + std::int64_t{limit_s} * 1'000'000'000;
  verdict = Verdict{};
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) {
    std::snprintf(verdict.observed, sizeof verdict.observed, "pipe failed");
    return;
  }
  ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  const pid_t child = ::fork();
  if (child == 0) become(name, device, ends[1]);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    std::snprintf(verdict.observed, sizeof verdict.observed, "fork failed");
    return;
  }
  ::setpgid(child, child);  // in both, so that neither has to wait for the other

  char record[4096] = "";
  std::size_t used = 0;
  const bool in_time = receive(ends[0], deadline, record, sizeof record, used);
  ::close(ends[0]);
  ::kill(-child, SIGKILL);  // itself too if late; what it started in any case
  int status = 0;
  ::waitpid(child, &status, 0);
  verdict.nanos = now_nanos() - begin;
  if (!in_time) {
    verdict.outcome = Outcome::timed_out;
    std::snprintf(verdict.observed, sizeof verdict.observed, "nothing within the limit");
  } else if (!understand(record, verdict)) {
    const bool killed = WIFSIGNALED(status);
    std::snprintf(verdict.observed, sizeof verdict.observed, "%s %d without a verdict", killed ? "signal" : "exit status",
                  killed ? WTERMSIG(status) : WEXITSTATUS(status));
  }
}

}  // namespace vramd::conformance
