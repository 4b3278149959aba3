/* What the jobs of process_life.py share: the driver, opened by name and never linked, so that it can come late, and some work
 * for it. A job says what it found on stdout; the same lines must come without the shim. */
#pragma once

#include <cuda.h>
#include <stddef.h>

#define LIFE_DRIVER(X)        \
  X(cuInit)                   \
  X(cuDeviceGet)              \
  X(cuDevicePrimaryCtxRetain) \
  X(cuCtxSetCurrent)          \
  X(cuCtxSynchronize)         \
  X(cuMemAlloc)               \
  X(cuMemFree)                \
  X(cuMemGetInfo)             \
  X(cuMemsetD8)               \
  X(cuMemcpyDtoH)

/* The header renames functions by macros; a member must get the same name as its use does. */
struct life_driver {
#define LIFE_MEMBER(name) __typeof__(&name) name;
  LIFE_DRIVER(LIFE_MEMBER)
#undef LIFE_MEMBER
};
extern struct life_driver driver;
extern CUcontext context;

/* Ends the process with status 70 and the text. Async-signal-safe. */
void fail(const char* what);
#define need(condition)                 \
  do {                                  \
    if (!(condition)) fail(#condition); \
  } while (0)

/* One line on stdout, by write(): nothing of it is repeated by a forked child's exit(). */
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

void open_driver(void);
void start_driver(int device);        /* cuInit, primary context, current in this thread */
unsigned long use_memory(unsigned n); /* allocates, fills, checks, frees; a number that depends on n alone */
CUdeviceptr take(size_t size, unsigned char fill);
void give(CUdeviceptr block, size_t size, unsigned char fill); /* checks the bytes, frees */

/* Starts `count` threads with the given stack (0: default) that use memory until stop_threads(). */
void start_threads(int count, size_t stack);
void stop_threads(void);
/* The same for a fixed number of rounds each; the sum of what they found. */
unsigned long run_threads(int count, int rounds, size_t stack);

/* The job's arguments after its name. */
int argument(int argc, char** argv, int index, int otherwise);

typedef int job_function(int argc, char** argv);
struct job {
  const char* name;
  job_function* run;
};
extern const struct job process_jobs[], thread_jobs[], signal_jobs[], exit_jobs[], descriptor_jobs[], limit_jobs[];
extern char** environ;
