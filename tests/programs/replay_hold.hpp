// Waiting for whoever started the program: for the end of stdin, or for SIGTERM.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

inline int hold_pipe[2] = {-1, -1};

inline void on_hold_signal(int) {
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(hold_pipe[1], &byte, 1);
}

// Prints "holding" when the signal is armed, then waits. Returns false when there is no pipe.
inline bool hold() {
  if (::pipe(hold_pipe) != 0) return false;
  struct sigaction action {};
  action.sa_handler = on_hold_signal;
  ::sigaction(SIGTERM, &action, nullptr);
  std::printf("holding\n");
  std::fflush(stdout);
  for (;;) {
    pollfd waits[2] = {{STDIN_FILENO, POLLIN, 0}, {hold_pipe[0], POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (waits[1].revents) return true;
    if (waits[0].revents) {
      char ignored[256];
      const ssize_t got = ::read(STDIN_FILENO, ignored, sizeof ignored);
      if (got <= 0) return true;
    }
  }
}
