/* Jobs that make processes. A child that calls the driver says what it got. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "life.h"

static int end_of(pid_t child) {
  int status = -1;
  need(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* What a child gets that was made after cuInit, from each kind of call that the shim answers. */
static void call_driver(void) {
  CUdeviceptr block = 0;
  size_t bytes[2];
  const CUresult allocated = driver.cuMemAlloc(&block, 1 << 20);
  const CUresult told = driver.cuMemGetInfo(&bytes[0], &bytes[1]);
  say("in the child: %d %d %d", allocated, told, driver.cuMemFree(block));
}

static int fork_after(int argc, char** argv) {
  const int under_load = argument(argc, argv, 0, 0);
  start_driver(0);
  const CUdeviceptr block = take(4 << 20, 9);
  if (under_load) start_threads(3, 0);
  for (int i = 0; i < (under_load ? 40 : 6); ++i) {
    const pid_t child = fork();
    need(child >= 0);
    if (child == 0) {
      if (!under_load && i % 3 == 2) call_driver();
      if (i % 2 == 0) _exit(i);
      exit(i);
    }
    need(end_of(child) == i);
    if (!under_load) (void)use_memory((unsigned)i);
  }
  if (under_load) stop_threads();
  give(block, 4 << 20, 9);
  say("sum %lu", run_threads(2, 10, 0));
  return 0;
}

/* A child that never calls the driver and lives while its input lasts. */
static int fork_lingers(int argc, char** argv) {
  (void)argc, (void)argv;
  start_driver(0);
  (void)take(40 << 20, 9);
  const pid_t child = fork();
  need(child >= 0);
  if (child == 0) {
    for (char c; read(0, &c, 1) == 1;) {
    }
    _exit(0);
  }
  say("holding");
  return end_of(child);
}

static int fork_before(int argc, char** argv) {
  (void)argc, (void)argv;
  open_driver();
  const pid_t child = fork();
  need(child >= 0);
  start_driver(0);
  const unsigned long sum = run_threads(2, 20, 0);
  if (child == 0) exit(sum % 100 == 0 ? 1 : 7);
  say("child %d, sum %lu", end_of(child), sum);
  return 0;
}

static int vfork_exec(int argc, char** argv) {
  (void)argc, (void)argv;
  start_driver(0);
  start_threads(2, 0);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", "exit 3", (char*)NULL);
      _exit(127);
    }
    need(child > 0 && end_of(child) == 3);
  }
  stop_threads();
  say("sum %lu", run_threads(2, 10, 0));
  return 0;
}

static int spawn(int argc, char** argv) {
  (void)argc, (void)argv;
  start_driver(0);
  start_threads(2, 0);
  char* const arguments[] = {(char*)"life_worker", (char*)"work", (char*)"2", (char*)"5", NULL};
  pid_t children[4];
  for (int i = 0; i < 4; ++i) need(posix_spawn(&children[i], "/proc/self/exe", NULL, NULL, arguments, environ) == 0);
  for (int i = 0; i < 4; ++i) need(end_of(children[i]) == 0);
  stop_threads();
  return 0;
}

/* No handler of pthread_atfork runs. */
static int raw_clone(int argc, char** argv) {
  (void)argc, (void)argv;
  start_driver(0);
  const CUdeviceptr block = take(4 << 20, 9);
  for (int i = 0; i < 4; ++i) {
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    need(child >= 0);
    if (child == 0) {
      if (i == 3) exit(3);
      _exit(i);
    }
    need(end_of(child) == i);
    (void)use_memory((unsigned)i);
  }
  give(block, 4 << 20, 9);
  say("sum %lu", run_threads(2, 10, 0));
  return 0;
}

static int exec_self(int argc, char** argv) {
  const int under_load = argument(argc, argv, 0, 0);
  start_driver(0);
  (void)take(16 << 20, 9);
  if (under_load) start_threads(3, 0);
  say("before");
  execl("/proc/self/exe", "life_worker", "work", (char*)NULL);
  return 1;
}

const struct job process_jobs[] = {
    {"fork_after", fork_after}, {"fork_before", fork_before}, {"fork_lingers", fork_lingers}, {"vfork_exec", vfork_exec},
    {"spawn", spawn},           {"raw_clone", raw_clone},     {"exec_self", exec_self},       {NULL, NULL}};
