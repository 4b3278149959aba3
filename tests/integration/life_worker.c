/* life_worker JOB [ARGUMENT...]: a program that lives in one of many ways; see process_life.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "life.h"

/* work [THREADS [ROUNDS [STACK]]] */
static int work(int argc, char** argv) {
  start_driver(0);
  say("sum %lu", run_threads(argument(argc, argv, 0, 2), argument(argc, argv, 1, 30), (size_t)argument(argc, argv, 2, 0)));
  return 0;
}

/* hold MIB [DEVICE]: holds a block while its input lasts, and works after each line of it. */
static int hold(int argc, char** argv) {
  const size_t size = (size_t)argument(argc, argv, 0, 8) << 20;
  start_driver(argument(argc, argv, 1, 0));
  const CUdeviceptr block = take(size, 5);
  say("holding");
  for (char c; read(0, &c, 1) == 1;) {
    const CUdeviceptr another = take(size, 6);
    say("sum %lu", use_memory(1) + use_memory(4));
    give(another, size, 6);
  }
  give(block, size, 5);
  say("done");
  return 0;
}

/* blocks [DEVICE]: a line "+MIB" of its input takes a block, a line "-" gives the first of them back. */
static int blocks(int argc, char** argv) {
  enum { most = 64 };
  struct {
    CUdeviceptr address;
    size_t size;
  } held[most];
  int first = 0, end = 0;
  char line[32];
  start_driver(argument(argc, argv, 0, 0));
  say("ready");
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (line[0] == '+') {
      need(end < most);
      held[end].size = (size_t)atoi(line + 1) << 20;
      held[end].address = take(held[end].size, (unsigned char)(end + 1));
      say("took %d", ++end);
    } else {
      need(first < end);
      give(held[first].address, held[first].size, (unsigned char)(first + 1));
      say("gave %d", ++first);
    }
  }
  for (; first < end; ++first) give(held[first].address, held[first].size, (unsigned char)(first + 1));
  say("done");
  return 0;
}

/* spy: a line "+MIB" takes a block, tells how many of its bytes are neither 0 nor this user's own, and fills it with this
 * user's; a line "-" gives it back. */
static int spy(int argc, char** argv) {
  enum { piece = 1 << 20 };
  static unsigned char seen[piece];
  const unsigned char own = (unsigned char)(getuid() & 127) | 128;
  CUdeviceptr block = 0;
  char line[32];
  (void)argc, (void)argv;
  start_driver(0);
  say("ready");
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (line[0] == '+') {
      const size_t size = (size_t)atoi(line + 1) << 20;
      unsigned long found = 0;
      need(block == 0 && driver.cuMemAlloc(&block, size) == CUDA_SUCCESS);
      for (size_t at = 0; at < size; at += piece) {
        need(driver.cuMemcpyDtoH(seen, block + at, piece) == CUDA_SUCCESS);
        for (size_t i = 0; i < piece; ++i) found += seen[i] != 0 && seen[i] != own;
      }
      need(driver.cuMemsetD8(block, own, size) == CUDA_SUCCESS);
      need(driver.cuCtxSynchronize() == CUDA_SUCCESS);
      say("found %lu", found);
    } else {
      need(driver.cuMemFree(block) == CUDA_SUCCESS);
      block = 0;
      say("gave");
    }
  }
  return 0;
}

static const struct job common_jobs[] = {{"work", work}, {"hold", hold}, {"blocks", blocks}, {"spy", spy}, {NULL, NULL}};

int main(int argc, char** argv) {
  const struct job* const lists[] = {common_jobs, process_jobs,    thread_jobs, signal_jobs,
                                     exit_jobs,   descriptor_jobs, limit_jobs};
  if (argc < 2) fail("a job's name is given");
  for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i)
    for (const struct job* job = lists[i]; job->name != NULL; ++job)
      if (strcmp(job->name, argv[1]) == 0) return job->run(argc - 2, argv + 2);
  fail("this job is known");
}
