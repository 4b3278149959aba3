/* A CUDA program as an old C library runs it: looks its functions up as a CUDA runtime does, and allocates from two threads.
 * Says whether the shim answered and where the memory came from. Bound to the oldest versions of what it calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
__asm__(".symver pthread_create, pthread_create@GLIBC_2.2.5");
__asm__(".symver pthread_join, pthread_join@GLIBC_2.2.5");

typedef unsigned long long address;
typedef int get_proc_address(const char*, void**, int, address, int*);
static int (*allocate)(address*, size_t);
static int (*release)(address);

static void need(int condition, const char* what) {
  if (condition) return;
  printf("not so: %s\n", what);
  exit(1);
}

static void* look_up(get_proc_address* query, const char* name, int version) {
  void* found = NULL;
  need(query(name, &found, version, 0, NULL) == 0 && found != NULL, name);
  return found;
}

static void* work(void* unused) {
  address held[50];
  (void)unused;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 50; ++i) need(allocate(&held[i], (size_t)(i + 1) * 40000) == 0, "an allocation");
    for (int i = 0; i < 50; ++i) need(release(held[i]) == 0, "a free");
  }
  return NULL;
}

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  need(driver != NULL, "there is a driver");
  get_proc_address* first = (get_proc_address*)dlsym(driver, "cuGetProcAddress_v2");
  need(first != NULL, "cuGetProcAddress_v2");
  get_proc_address* query = (get_proc_address*)look_up(first, "cuGetProcAddress", 12000);
  allocate = (int (*)(address*, size_t))look_up(query, "cuMemAlloc", 3020);
  release = (int (*)(address))look_up(query, "cuMemFree", 3020);
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  int (*chunks)(void) = (int (*)(void))dlsym(driver, "small_driver_chunks");
  int (*native)(void) = (int (*)(void))dlsym(driver, "small_driver_native");
  need(init != NULL && chunks != NULL && native != NULL, "the driver's own functions");
  need(init(0) == 0, "cuInit");

  address held = 0;
  need(allocate(&held, 40 << 20) == 0, "an allocation");
  printf("%s: %d chunks, %d native\n", dlsym(RTLD_DEFAULT, "vramd_hook_statistics") != NULL ? "hooked" : "not hooked",
         chunks() != 0, native() != 0);
  pthread_t thread;
  need(pthread_create(&thread, NULL, work, NULL) == 0, "a thread");
  (void)work(NULL);
  need(pthread_join(thread, NULL) == 0, "the end of a thread");
  need(release(held) == 0, "a free");
  return 0;
}
