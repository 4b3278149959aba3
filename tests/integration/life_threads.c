/* Jobs whose threads come and go. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "life.h"

static CUdeviceptr left[64];

static void* leave_block(void* slot) {
  need(driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
  *(CUdeviceptr*)slot = take(200000, 3);
  return NULL;
}

/* Blocks outlive the threads that made them; others allocate meanwhile. */
static int thread_ends(int argc, char** argv) {
  (void)argc, (void)argv;
  start_driver(0);
  start_threads(3, 0);
  for (int round = 0; round < 3; ++round) {
    pthread_t threads[64];
    for (int i = 0; i < 64; ++i) need(pthread_create(&threads[i], NULL, leave_block, &left[i]) == 0);
    for (int i = 0; i < 64; ++i) need(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 64; ++i) give(left[i], 200000, 3);
  }
  stop_threads();
  say("sum %lu", use_memory(3));
  return 0;
}

static int cancel_type;

/* Deferred: the request may be met inside a driver call, where that has a cancellation point. Asynchronous: driver calls are no
 * more safe for it than malloc() is, so this thread shuts it out, and the shim must leave that as it is. It doesn't shut it out
 * again: glibc 2.36 may then still cancel, where it was sent the signal before. */
static void* be_cancelled(void* unused) {
  (void)unused;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  need(driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
  pthread_setcanceltype(cancel_type, NULL);
  const int during = cancel_type == PTHREAD_CANCEL_DEFERRED ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE;
  for (unsigned i = 0; during == PTHREAD_CANCEL_ENABLE || i < 10; ++i) {
    int before;
    CUdeviceptr block = 0;
    pthread_setcancelstate(during, NULL);
    need(driver.cuMemAlloc(&block, i % 2 ? 100000 : 40 << 20) == CUDA_SUCCESS);
    need(driver.cuMemFree(block) == CUDA_SUCCESS);
    pthread_setcancelstate(during, &before);
    need(before == during);
    if (during == PTHREAD_CANCEL_ENABLE) pthread_testcancel();
  }
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  for (;;) pause();
  return NULL;
}

static int cancelled(int argc, char** argv) {
  cancel_type = argument(argc, argv, 0, 0) ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED;
  start_driver(0);
  (void)use_memory(1);
  for (int i = 0; i < 60; ++i) {
    pthread_t thread;
    void* result = NULL;
    need(pthread_create(&thread, NULL, be_cancelled, NULL) == 0);
    usleep((unsigned)(i * 97 % 3000));
    const int told = pthread_cancel(thread); /* ESRCH: it saw the request and was gone before it was rung */
    need((told == 0 || told == ESRCH) && pthread_join(thread, &result) == 0 &&
         (result == PTHREAD_CANCELED || cancel_type == PTHREAD_CANCEL_ASYNCHRONOUS)); /* glibc 2.36 forgets it */
  }
  say("sum %lu", run_threads(3, 20, 0));
  return 0;
}

/* apart LIBRARY: one that prefers the C library's dlsym to ours, RTLD_DEEPBIND, beside a program that doesn't. What it looks up
 * is the driver's own. Its memory can be freed here, and ours can be used there. */
static int apart(int argc, char** argv) {
  need(argc >= 1);
  start_driver(0);
  const CUdeviceptr before = take(40 << 20, 3);
  void* library = dlopen(argv[0], RTLD_NOW | RTLD_DEEPBIND);
  if (library == NULL) fail(dlerror());
  unsigned long (*run)(unsigned) = (unsigned long (*)(unsigned))dlsym(library, "life_plugin");
  CUdeviceptr (*take_there)(size_t, unsigned char) = (CUdeviceptr(*)(size_t, unsigned char))dlsym(library, "life_plugin_take");
  void* (*allocator)(void) = (void* (*)(void))dlsym(library, "life_plugin_allocator");
  need(run != NULL && take_there != NULL && allocator != NULL);
  const unsigned long sum = run(1) + use_memory(2) + run(3);
  const int shim = strcmp(getenv("LIFE_SHIM"), "1") == 0;
  need((allocator() == (void*)driver.cuMemAlloc) == !shim);
  give(take_there(3 << 20, 9), 3 << 20, 9);
  give(before, 40 << 20, 3);
  say("sum %lu", sum);
  return 0;
}

/* plugins LIBRARY ROUNDS: a library that uses the driver comes and goes. */
static int plugins(int argc, char** argv) {
  need(argc >= 2);
  unsigned long sum = 0;
  for (int i = 0; i < atoi(argv[1]); ++i) {
    void* library = dlopen(argv[0], RTLD_NOW);
    if (library == NULL) fail(dlerror());
    unsigned long (*run)(unsigned) = (unsigned long (*)(unsigned))dlsym(library, "life_plugin");
    need(run != NULL);
    sum += run((unsigned)i);
    need(dlclose(library) == 0);
  }
  say("sum %lu", sum);
  return 0;
}

static int late_driver(int argc, char** argv) {
  (void)argc, (void)argv;
  for (int i = 0; i < 1000; ++i) need(dlsym(RTLD_DEFAULT, i % 2 ? "cuNothing" : "malloc") != NULL || i % 2);
  say("sum %lu", (start_driver(0), run_threads(2, 10, 0)));
  return 0;
}

const struct job thread_jobs[] = {{"apart", apart},     {"thread_ends", thread_ends}, {"cancelled", cancelled},
                                  {"plugins", plugins}, {"late_driver", late_driver}, {NULL, NULL}};
