/* Jobs that end: `ends HOW [UNDER_LOAD]`, always with live blocks. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "life.h"

static CUdeviceptr block;

static void free_and_work(void) {
  need(driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
  give(block, 1 << 20, 8);
  block = take(1 << 20, 8);
  say("at the end: %lu", use_memory(2));
}

static void free_only(void) {
  const CUresult freed = driver.cuMemFree(block);
  say("at the very end: %d", freed);
}

static void* leave(void* unused) {
  (void)unused;
  usleep(10000);
  exit(5);
}

static int ends(int argc, char** argv) {
  need(argc >= 1);
  const char* how = argv[0];
  if (strcmp(how, "atexit_before") == 0) need(atexit(free_only) == 0); /* runs after everything that cuInit registers */
  start_driver(0);
  block = take(1 << 20, 8);
  (void)take(30 << 20, 8);
  if (argument(argc, argv, 1, 0)) start_threads(4, 0), usleep(20000);
  say("leaving");
  if (strcmp(how, "exit") == 0) exit(5);
  if (strcmp(how, "_exit") == 0) _exit(5);
  if (strcmp(how, "quick_exit") == 0) quick_exit(5);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "kill") == 0) raise(SIGKILL);
  if (strcmp(how, "segv") == 0) *(volatile int*)strtoul("8", NULL, 10) = 0;
  if (strcmp(how, "term") == 0) raise(SIGTERM);
  if (strcmp(how, "thread") == 0 || strcmp(how, "pthread_exit") == 0) {
    pthread_t thread;
    need(pthread_create(&thread, NULL, leave, NULL) == 0);
    if (strcmp(how, "pthread_exit") == 0) pthread_exit(NULL); /* the main thread; another ends the process */
    for (;;) pause();
  }
  if (strcmp(how, "atexit_after") == 0) need(atexit(free_and_work) == 0);
  return 5;
}

const struct job exit_jobs[] = {{"ends", ends}, {NULL, NULL}};
