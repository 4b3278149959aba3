/* Jobs in narrow places. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "life.h"

static void limit(__rlimit_resource_t resource, rlim_t value) {
  struct rlimit now;
  need(getrlimit(resource, &now) == 0);
  now.rlim_cur = value;
  need(setrlimit(resource, &now) == 0);
}

/* limited RESOURCE VALUE: before cuInit. */
static int limited(int argc, char** argv) {
  need(argc == 2);
  const struct {
    const char* name;
    __rlimit_resource_t resource;
  } known[] = {{"memlock", RLIMIT_MEMLOCK}, {"nproc", RLIMIT_NPROC}, {"stack", RLIMIT_STACK}, {"core", RLIMIT_CORE}};
  open_driver();
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (strcmp(known[i].name, argv[0]) == 0) limit(known[i].resource, (rlim_t)atol(argv[1]));
  start_driver(0);
  unsigned long sum = 0;
  for (unsigned i = 0; i < 60; ++i) sum += use_memory(i);
  say("sum %lu", sum);
  return 0;
}

/* no_address_space MIB: that much more of it after cuInit. Allocations may fail, with out of memory. */
static int no_address_space(int argc, char** argv) {
  start_driver(0);
  (void)use_memory(0);
  unsigned long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  need(file != NULL && fscanf(file, "%lu", &pages) == 1 && fclose(file) == 0);
  limit(RLIMIT_AS, (rlim_t)pages * 4096 + ((rlim_t)argument(argc, argv, 0, 0) << 20));
  CUdeviceptr blocks[24];
  int count = 0;
  for (int i = 0; i < 24; ++i) {
    const CUresult result = driver.cuMemAlloc(&blocks[count], (size_t)(i % 8 + 1) << 20);
    need(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
    if (result == CUDA_SUCCESS) ++count;
  }
  while (count > 0) need(driver.cuMemFree(blocks[--count]) == CUDA_SUCCESS);
  limit(RLIMIT_AS, RLIM_INFINITY);
  say("sum %lu", run_threads(2, 10, 0));
  return 0;
}

static void forbid(const int* calls, size_t count, unsigned action) {
  struct sock_filter program[64];
  size_t n = 0;
  program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < count; ++i) {
    program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
  }
  program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const struct sock_fprog filter = {(unsigned short)n, program};
  need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

/* filtered HOW: calls that a container may lack answer EPERM (0) or ENOSYS (1); nobody may miss them. Calls that change a
 * process in ways its program would notice end it (2): who makes them for a program without its asking breaks it. */
static int filtered(int argc, char** argv) {
  static const int lacking[] = {SYS_membarrier, SYS_memfd_create, SYS_pidfd_open, SYS_socket, SYS_close_range, SYS_userfaultfd};
  static const int never[] = {SYS_ptrace,
                              SYS_process_vm_readv,
                              SYS_process_vm_writev,
                              SYS_umask,
                              SYS_setuid,
                              SYS_setgid,
                              SYS_chdir,
                              SYS_fchdir,
                              SYS_execve,
                              SYS_vfork,
                              SYS_fork,
                              SYS_shmget,
                              SYS_semop,
                              SYS_setitimer,
                              SYS_alarm,
                              SYS_timer_create,
                              SYS_kill,
                              SYS_setsid,
                              SYS_setpgid,
                              SYS_sched_setaffinity,
                              SYS_setpriority,
                              SYS_personality,
                              SYS_perf_event_open,
                              SYS_bpf,
                              SYS_rename,
                              SYS_syslog};
  const int how = argument(argc, argv, 0, 0);
  open_driver();
  if (how == 2) {
    forbid(never, sizeof never / sizeof *never, SECCOMP_RET_KILL_PROCESS);
  } else {
    forbid(lacking, sizeof lacking / sizeof *lacking, SECCOMP_RET_ERRNO | (how == 0 ? EPERM : ENOSYS));
  }
  start_driver(0);
  say("sum %lu", run_threads(3, 20, 0));
  return 0;
}

/* rooted FOLDER: chroot into an empty folder once the driver is up. */
static int rooted(int argc, char** argv) {
  need(argc == 1);
  start_driver(0);
  const CUdeviceptr block = take(4 << 20, 7);
  need(chroot(argv[0]) == 0 && chdir("/") == 0);
  give(block, 4 << 20, 7);
  const CUdeviceptr another = take(64 << 20, 5);
  give(another, 64 << 20, 5);
  say("sum %lu", run_threads(2, 10, 0));
  return 0;
}

const struct job limit_jobs[] = {
    {"limited", limited}, {"no_address_space", no_address_space}, {"filtered", filtered}, {"rooted", rooted}, {NULL, NULL}};
