// A driver that appears after the first calls of its functions, by a path of its own and without SONAME.
// Argument: the path.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                           \
  do {                                                             \
    if (!(condition)) {                                            \
      printf("line %d: %s does not hold\n", __LINE__, #condition); \
      return 1;                                                    \
    }                                                              \
  } while (0)

static const char* file_of(const void* function) {
  static Dl_info info;
  return dladdr(function, &info) != 0 ? info.dli_fname : "";
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != NULL) return 77;

  int (*synchronise)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "cuCtxSynchronize");
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(RTLD_DEFAULT, "cuInit");
  CHECK(synchronise() == 100);
  CHECK(init(0) == 100);

  // A driver in a namespace of its own is nobody else's driver.
  void* elsewhere = dlmopen(LM_ID_NEWLM, arguments[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(elsewhere != NULL);
  void* init_elsewhere = dlsym(elsewhere, "cuInit");
  CHECK(strcmp(file_of(init_elsewhere), arguments[1]) == 0);
  CHECK(synchronise() == 100);

  // One that the program opens is, from the next call on, though libcuda.so.1 is still not found by its name.
  void* driver = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(driver != NULL);
  CHECK(synchronise() == 0);
  CHECK(init(0) == 0);
  CHECK(dlsym(driver, "cuInit") == (void*)init);
  CHECK(dlsym(elsewhere, "cuInit") == init_elsewhere);

  // It stays valid after the program has closed it.
  CHECK(dlclose(driver) == 0);
  CHECK(synchronise() == 0);
  return 0;
}
