// What a program sees of the hook where no NVIDIA driver is installed. Exit status 77: there is one, nothing
// to see.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#define CHECK(condition)                                           \
  do {                                                             \
    if (!(condition)) {                                            \
      printf("line %d: %s does not hold\n", __LINE__, #condition); \
      return 1;                                                    \
    }                                                              \
  } while (0)

int main(void) {
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != NULL) return 77;
  CHECK(dlerror() != NULL);

  // The names are in the global scope although there is no driver; they answer as a machine without GPU does.
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(RTLD_DEFAULT, "cuInit");
  CHECK(init != NULL);
  CHECK(init(0) == 100);
  CHECK(init(0) == 100);
  int (*allocate)(void*, size_t) = (int (*)(void*, size_t))dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
  CHECK(allocate(NULL, 1) == 100);
  int (*device_get)(int*, int) = (int (*)(int*, int))dlsym(RTLD_DEFAULT, "cuDeviceGet");
  CHECK(device_get(NULL, 0) == 100);
  int (*query)(const char*, void**, int, unsigned long, int*) =
      (int (*)(const char*, void**, int, unsigned long, int*))dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2");
  void* found = NULL;
  CHECK(query("cuInit", &found, 2000, 0, NULL) == 100);
  CHECK(found == NULL);

  // Loading and looking up everything else works as ever.
  CHECK(dlsym(RTLD_DEFAULT, "printf") != NULL);
  CHECK(dlsym(RTLD_DEFAULT, "no_such_function") == NULL);
  return 0;
}
