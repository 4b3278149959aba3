// Two libraries are built of this, FIRST and second; both define the same functions. The first ones ask for
// the next one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// "cuInit" and "cudnnCreate" stand for names that the hook looks at, "ompt_start_tool" for any other.
#ifdef FIRST
#define DEFINE(name)                                                            \
  const char* name(void) {                                                      \
    const char* (*next)(void) = (const char* (*)(void))dlsym(RTLD_NEXT, #name); \
    static char answer[100];                                                    \
    snprintf(answer, sizeof(answer), "first>%s", next ? next() : "none");       \
    return answer;                                                              \
  }
#else
#define DEFINE(name) \
  const char* name(void) { return "second"; }
#endif

#pragma GCC visibility push(default)
DEFINE(ompt_start_tool)
DEFINE(cudnnCreate)
DEFINE(cuNotOfTheDriver)
#pragma GCC visibility pop
