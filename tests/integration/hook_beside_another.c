// Runs with libvramd.so and another library that exports dlsym preloaded: both must do their work.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  int (*answer)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "answer_of_the_other_library");
  if (answer == NULL || answer() != 42) {
    printf("the other library was passed over\n");
    return 1;
  }
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  Dl_info info;
  if (driver == NULL || dladdr(dlsym(driver, "cuInit"), &info) == 0 || strstr(info.dli_fname, "libvramd.so") == NULL) {
    printf("cuInit was not hooked\n");
    return 1;
  }
  return 0;
}
