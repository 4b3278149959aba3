#include "shim/client/log.hpp"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vramd::shim {
namespace {

int current_level = static_cast<int>(LogLevel::warn);

// Whether a line can be written to stderr without harm. The program may never write there itself: a pipe that nobody reads any
// more would end it by SIGPIPE, a full one would stop it for good.
bool stderr_takes_a_line() {
  pollfd item{STDERR_FILENO, POLLOUT, 0};
  return ::syscall(SYS_poll, &item, 1, 0) == 1 && item.revents == POLLOUT;
}

}  // namespace

void set_log_level(LogLevel level) { __atomic_store_n(&current_level, static_cast<int>(level), __ATOMIC_RELAXED); }

LogLevel log_level() { return static_cast<LogLevel>(__atomic_load_n(&current_level, __ATOMIC_RELAXED)); }

void log(LogLevel level, const char* format, ...) {
  if (static_cast<int>(level) > static_cast<int>(log_level())) return;
  char line[512];
  const char* prefix = level == LogLevel::error ? "vramd: error: " : level == LogLevel::warn ? "vramd: warning: " : "vramd: ";
  int length = snprintf(line, sizeof line, "%s", prefix);
  va_list arguments;
  va_start(arguments, format);
  const int room = static_cast<int>(sizeof line) - length - 1;
  const int more = vsnprintf(line + length, static_cast<unsigned>(room), format, arguments);
  va_end(arguments);
  if (more > 0) length += more < room ? more : room - 1;
  line[length++] = '\n';
  const int saved = errno;
  // By number: libc's write() is a cancellation point. Nobody to tell when this fails: stderr may be closed.
  if (stderr_takes_a_line()) (void)::syscall(SYS_write, STDERR_FILENO, line, length);
  errno = saved;
}

}  // namespace vramd::shim
