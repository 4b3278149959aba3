#include "shim/hook/process.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "tests/support/catch.hpp"

using namespace vramd::shim::hook;

namespace {

int exit_status_of(pid_t child) {
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

// Whether a child of this process thinks that it is one.
bool child_is_inert(bool by_system_call) {
  const pid_t child = by_system_call ? static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) : fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(in_forked_child() && passes_through() ? 1 : 0);
  return exit_status_of(child) == 1;
}

}  // namespace

TEST_CASE("A child is inert if its parent was marked before, however it was made") {
  CHECK_FALSE(child_is_inert(false));  // made before the mark: a process of its own
  CHECK_FALSE(child_is_inert(true));
  mark_process();
  mark_process();
  CHECK_FALSE(in_forked_child());
  CHECK(child_is_inert(false));
  CHECK(child_is_inert(true));
}

TEST_CASE("The child of an inert child is inert") {
  mark_process();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    mark_process();  // does not make it a process of its own
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(in_forked_child() ? 1 : 0);
    int status = 0;
    waitpid(grandchild, &status, 0);
    _exit(WEXITSTATUS(status));
  }
  CHECK(exit_status_of(child) == 1);
}

TEST_CASE("The environment is read once") {
  unsetenv("CUDA_INJECTION64_PATH");
  setenv("VRAMD_DISABLE", "0", 1);
  CHECK_FALSE(disabled());
  setenv("VRAMD_DISABLE", "1", 1);
  CHECK_FALSE(disabled());
}
