/* Jobs that are interrupted. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "life.h"

static unsigned signals;

static void count_signal(int number) {
  (void)number;
  __atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
}

static void run_program(int number) {
  (void)number;
  const int saved = errno;
  __atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
  /* Not fork(): it takes malloc's locks, and this may be inside malloc. */
  const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  if (child == 0) {
    execl("/bin/true", "true", (char*)NULL);
    _exit(127);
  }
  int status = -1;
  need(child > 0);
  while (waitpid(child, &status, 0) < 0) need(errno == EINTR);
  need(status == 0);
  errno = saved;
}

static void reap(int number) {
  (void)number;
  const int saved = errno;
  while (waitpid(-1, NULL, WNOHANG) > 0) __atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
  errno = saved;
}

static void on(int number, void (*handler)(int), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  need(sigaction(number, &action, NULL) == 0);
}

static void ring_every(int microseconds) {
  const struct itimerval every = {{0, microseconds}, {0, microseconds}};
  need(setitimer(ITIMER_REAL, &every, NULL) == 0);
}

/* storm RESTART: signals by a timer and by hand, while threads work. They hit whatever thread takes them. */
static int storm(int argc, char** argv) {
  const int flags = argument(argc, argv, 0, 0) ? SA_RESTART : 0;
  on(SIGALRM, count_signal, flags);
  on(SIGUSR1, count_signal, flags);
  start_driver(0);
  start_threads(4, 0);
  ring_every(200);
  for (int i = 0; i < 1000; ++i) {
    need(kill(getpid(), SIGUSR1) == 0);
    if (i % 16 == 0) (void)use_memory((unsigned)i);
  }
  ring_every(0);
  stop_threads();
  need(signals > 100);
  say("sum %lu", run_threads(2, 10, 0));
  return 0;
}

/* The first call of the driver is interrupted too: hello and its reply. */
static int storm_at_start(int argc, char** argv) {
  (void)argc, (void)argv;
  on(SIGALRM, count_signal, 0);
  open_driver();
  ring_every(100);
  start_driver(0);
  say("sum %lu", run_threads(2, 10, 0));
  ring_every(0);
  return 0;
}

static int handler_forks(int argc, char** argv) {
  (void)argc, (void)argv;
  on(SIGALRM, run_program, SA_RESTART);
  start_driver(0);
  ring_every(5000);
  const unsigned long sum = run_threads(3, 10, 0);
  for (unsigned i = 0; __atomic_load_n(&signals, __ATOMIC_RELAXED) < 20; ++i) (void)use_memory(i);
  ring_every(0);
  say("sum %lu", sum);
  return 0;
}

static int children_end(int argc, char** argv) {
  (void)argc, (void)argv;
  on(SIGCHLD, reap, 0);
  start_driver(0);
  start_threads(2, 0);
  for (int i = 0; i < 30; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    need(child > 0);
    (void)use_memory((unsigned)i);
  }
  while (__atomic_load_n(&signals, __ATOMIC_RELAXED) < 30) usleep(1000);
  stop_threads();
  say("reaped %u", signals);
  return 0;
}

const struct job signal_jobs[] = {{"storm", storm},
                                  {"storm_at_start", storm_at_start},
                                  {"handler_forks", handler_forks},
                                  {"children_end", children_end},
                                  {NULL, NULL}};
