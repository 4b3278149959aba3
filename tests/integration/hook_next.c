// A library between the program and the driver that asks for the next definition of a driver function, as
// tracers do.
#define _GNU_SOURCE
#include <dlfcn.h>

__attribute__((visibility("default"))) void* next_definition(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  return found == (void*)&next_definition ? (void*)0 : found;  // no tail call: RTLD_NEXT is relative to this library
}
