/* The work of the jobs, see life.h. In the program and in its plugin. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "life.h"

struct life_driver driver;
CUcontext context;

void fail(const char* what) {
  (void)!write(2, "life_worker: not so: ", 21);
  (void)!write(2, what, strlen(what));
  (void)!write(2, "\n", 1);
  _exit(70);
}

void say(const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  line[length++] = '\n';
  need(write(1, line, (size_t)length) == length);
}

void open_driver(void) {
  /* A setuid program's loader looks at no path of ours. */
  const char* path = getenv("LIFE_DRIVER");
  void* library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
  if (library == NULL) fail(dlerror());
#define TEXT(name) #name
#define LOOK_UP(name) need((driver.name = (__typeof__(driver.name))dlsym(library, TEXT(name))) != NULL);
  LIFE_DRIVER(LOOK_UP)
#undef LOOK_UP
}

void start_driver(int device) {
  if (driver.cuInit == NULL) open_driver();
  need(driver.cuInit(0) == CUDA_SUCCESS);
  CUdevice handle;
  need(driver.cuDeviceGet(&handle, device) == CUDA_SUCCESS);
  need(driver.cuDevicePrimaryCtxRetain(&context, handle) == CUDA_SUCCESS);
  need(driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
  /* A preloaded shim must be between this program and the driver: else its test would prove nothing. */
  uint64_t (*handed_out)(const char*) = (uint64_t(*)(const char*))dlsym(RTLD_DEFAULT, "vramd_hook_handed_out");
  const char* expected = getenv("LIFE_SHIM");
  if (expected != NULL && *expected == '1') need(handed_out != NULL && handed_out("cuMemAlloc_v2") > 0);
  if (expected != NULL && *expected == '0') need(handed_out == NULL || handed_out("cuMemAlloc_v2") == 0);
}

CUdeviceptr take(size_t size, unsigned char fill) {
  CUdeviceptr block = 0;
  need(driver.cuMemAlloc(&block, size) == CUDA_SUCCESS);
  need(driver.cuMemsetD8(block, fill, size) == CUDA_SUCCESS);
  return block;
}

void give(CUdeviceptr block, size_t size, unsigned char fill) {
  unsigned char edge[2] = {0, 0};
  need(driver.cuMemcpyDtoH(&edge[0], block, 1) == CUDA_SUCCESS);
  need(driver.cuMemcpyDtoH(&edge[1], block + size - 1, 1) == CUDA_SUCCESS);
  need(edge[0] == fill && edge[1] == fill);
  need(driver.cuMemFree(block) == CUDA_SUCCESS);
}

unsigned long use_memory(unsigned n) {
  static const size_t sizes[] = {512, 70000, 1 << 20, 100, 3 << 20, 4096};
  const size_t size = sizes[n % (sizeof sizes / sizeof *sizes)];
  const unsigned char fill = (unsigned char)(n * 37 + 1);
  const CUdeviceptr block = take(size, fill);
  give(block, size, fill);
  return size * fill;
}

struct task {
  pthread_t thread;
  int number, rounds;
  unsigned long sum;
};
static struct task tasks[256];
static int task_count;
static int stopping;

static void* run_task(void* argument) {
  struct task* task = argument;
  need(driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
  for (int i = 0; task->rounds < 0 ? !__atomic_load_n(&stopping, __ATOMIC_RELAXED) : i < task->rounds; ++i)
    task->sum += use_memory((unsigned)(task->number * 1000 + i % 1000));
  return NULL;
}

static void start_tasks(int count, int rounds, size_t stack) {
  need(count <= 256);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack != 0) need(pthread_attr_setstacksize(&attributes, stack) == 0);
  stopping = 0;
  task_count = count;
  for (int i = 0; i < count; ++i) {
    tasks[i] = (struct task){0, i, rounds, 0};
    need(pthread_create(&tasks[i].thread, &attributes, run_task, &tasks[i]) == 0);
  }
  pthread_attr_destroy(&attributes);
}

void start_threads(int count, size_t stack) { start_tasks(count, -1, stack); }

void stop_threads(void) {
  __atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < task_count; ++i) need(pthread_join(tasks[i].thread, NULL) == 0);
}

unsigned long run_threads(int count, int rounds, size_t stack) {
  start_tasks(count, rounds, stack);
  unsigned long sum = 0;
  for (int i = 0; i < count; ++i) {
    need(pthread_join(tasks[i].thread, NULL) == 0);
    sum += tasks[i].sum;
  }
  return sum;
}

int argument(int argc, char** argv, int index, int otherwise) { return index < argc ? atoi(argv[index]) : otherwise; }
