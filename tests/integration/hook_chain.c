// Prints what RTLD_NEXT finds from a library that is searched before another one with the same names, and
// from here. The output must be the same with and without libvramd.so.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

const char* ompt_start_tool(void);
const char* cudnnCreate(void);
const char* cuNotOfTheDriver(void);

int main(void) {
  printf("%s %s %s\n", ompt_start_tool(), cudnnCreate(), cuNotOfTheDriver());
  const char* (*next)(void) = (const char* (*)(void))dlsym(RTLD_NEXT, "cudnnCreate");
  printf("%s\n", next ? next() : "none");
  next = (const char* (*)(void))dlvsym(RTLD_NEXT, "cudnnCreate", "GLIBC_2.2.5");
  printf("%s\n", next ? next() : "none");
  printf("%d\n", dlsym(RTLD_NEXT, "main") != NULL);
  return 0;
}
