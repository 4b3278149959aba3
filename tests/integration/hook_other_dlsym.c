// Another preloaded library that has a dlsym of its own, as profilers and overlays do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

static int answer(void) { return 42; }

__attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) {
  if (name != NULL && strcmp(name, "answer_of_the_other_library") == 0) return (void*)&answer;
  void* (*next)(void*, const char*) = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return next(handle, name);
}
