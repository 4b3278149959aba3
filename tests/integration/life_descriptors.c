/* Jobs that treat descriptors as if all were their own. What they must not touch are the simulated driver's: as a real one's,
 * they are its life. So these jobs close what is no file of the folder SIM_DIR. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "life.h"

/* Also true for one that another thread has closed since it was seen. */
static int drivers_own(int fd) {
  char link[32], target[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, target, sizeof target - 1);
  if (length <= 0) return 1;
  target[length] = '\0';
  const char* folder = getenv("SIM_DIR");
  need(folder != NULL);
  return strncmp(target, folder, strlen(folder)) == 0;
}

/* The open descriptors from `lowest` on that are not the driver's. */
static int others(int lowest, int* found, int room) {
  int count = 0;
  DIR* list = opendir("/proc/self/fd");
  need(list != NULL);
  for (struct dirent* entry; (entry = readdir(list)) != NULL;) {
    const int fd = atoi(entry->d_name);
    if (entry->d_name[0] == '.' || fd < lowest || fd == dirfd(list) || drivers_own(fd)) continue;
    need(count < room);
    found[count++] = fd;
  }
  closedir(list);
  return count;
}

static void close_one_by_one(void) {
  int found[64];
  const int count = others(3, found, 64);
  for (int i = 0; i < count; ++i) (void)close(found[i]);
}

/* All gaps between the driver's. */
static void close_ranges(void) {
  unsigned begin = 3;
  for (unsigned fd = 3; fd <= 4096; ++fd) {
    if (fd < 4096 && (fcntl((int)fd, F_GETFD) < 0 || !drivers_own((int)fd))) continue;
    if (fd > begin) need(syscall(SYS_close_range, begin, fd - 1, 0) == 0);
    begin = fd + 1;
  }
}

static void use_under_load(int rounds, void (*between)(void)) {
  start_threads(3, 0);
  for (int i = 0; i < rounds; ++i) {
    usleep(2000);
    between();
    (void)use_memory((unsigned)i);
  }
  stop_threads();
}

/* close_all HOW: 0 one by one, 1 by ranges; in the middle of work, and before cuInit. */
static int close_all(int argc, char** argv) {
  void (*const close_them)(void) = argument(argc, argv, 0, 0) ? close_ranges : close_one_by_one;
  close_them();
  start_driver(0);
  const CUdeviceptr block = take(40 << 20, 4);
  use_under_load(10, close_them);
  give(block, 40 << 20, 4);
  say("sum %lu", run_threads(2, 10, 0));
  return 0;
}

/* take_numbers HOW: a file (0) or one end of a socket pair (1) is put over every descriptor that the program didn't open.
 * Nothing may be read from it, written to it or closed. */
static int take_numbers(int argc, char** argv) {
  const int sockets = argument(argc, argv, 0, 0);
  int known[64], found[64], pair[2];
  start_driver(0);
  const CUdeviceptr block = take(40 << 20, 4);
  if (sockets) {
    need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) == 0);
    need(send(pair[1], "here", 4, 0) == 4);
  } else {
    pair[0] = pair[1] = open(".", O_TMPFILE | O_RDWR, 0600);
    need(pair[0] >= 0 && write(pair[0], "here", 4) == 4);
  }
  start_threads(3, 0);
  usleep(5000);
  int count = 0;
  for (int i = others(3, found, 64); i-- > 0;) {
    if (found[i] == pair[0] || found[i] == pair[1]) continue;
    if (dup2(pair[0], found[i]) == found[i]) known[count++] = found[i];
  }
  for (unsigned i = 0; i < 20; ++i) (void)use_memory(i);
  const CUdeviceptr another = take(64 << 20, 5); /* grows: would go to the daemon */
  stop_threads();
  give(another, 64 << 20, 5);
  struct stat mine, now;
  need(fstat(pair[0], &mine) == 0);
  for (int i = 0; i < count; ++i) need(fstat(known[i], &now) == 0 && now.st_ino == mine.st_ino && now.st_dev == mine.st_dev);
  char text[16];
  if (sockets) {
    need(recv(pair[1], text, sizeof text, 0) < 0 && errno == EAGAIN);
    need(recv(pair[0], text, sizeof text, 0) == 4);
  } else {
    need(lseek(pair[0], 0, SEEK_CUR) == 4 && lseek(pair[0], 0, SEEK_END) == 4);
  }
  give(block, 40 << 20, 4);
  say("sum %lu", run_threads(2, 10, 0));
  return 0;
}

/* without_standard FILE [LIMIT]: started with descriptors 0 to 2 closed. They are still closed after work. Says so in a file.
 */
static int without_standard(int argc, char** argv) {
  need(argc >= 1);
  const int limit = argument(argc, argv, 1, 0);
  const struct rlimit few = {(rlim_t)limit, (rlim_t)limit};
  if (limit != 0) need(setrlimit(RLIMIT_NOFILE, &few) == 0);
  for (int fd = 0; fd < 3; ++fd) need(fcntl(fd, F_GETFD) < 0);
  start_driver(0);
  const CUdeviceptr block = take(8 << 20, 1);
  const unsigned long sum = run_threads(2, 10, 0);
  int taken = 0;
  for (int fd = 0; fd < 3; ++fd) taken += fcntl(fd, F_GETFD) >= 0 && !drivers_own(fd);
  give(block, 8 << 20, 1);
  FILE* file = fopen(argv[0], "w");
  need(file != NULL && fprintf(file, "sum %lu, taken %d\n", sum, taken) > 0 && fclose(file) == 0);
  return taken;
}

/* few_descriptors LIMIT [FILL]: no more than LIMIT; with FILL, none is left free once the driver is up. */
static int few_descriptors(int argc, char** argv) {
  struct rlimit few;
  need(getrlimit(RLIMIT_NOFILE, &few) == 0);
  few.rlim_cur = (rlim_t)argument(argc, argv, 0, 64);
  need(setrlimit(RLIMIT_NOFILE, &few) == 0);
  start_driver(0);
  int last = -1;
  if (argument(argc, argv, 1, 0))
    for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;) last = fd;
  const CUdeviceptr block = take(40 << 20, 4);
  const unsigned long sum = run_threads(3, 20, 0);
  give(block, 40 << 20, 4);
  if (last >= 0) need(close(last) == 0);
  say("sum %lu", sum);
  return 0;
}

const struct job descriptor_jobs[] = {{"close_all", close_all},
                                      {"take_numbers", take_numbers},
                                      {"without_standard", without_standard},
                                      {"few_descriptors", few_descriptors},
                                      {NULL, NULL}};
