// The C library's own dlsym and dlvsym, past any preloaded library: whoever loads this object with
// RTLD_DEEPBIND makes it find its own dependency, libc, first. The oracle of the hook's tests, and the proof
// that RTLD_DEEPBIND does no harm.
#define _GNU_SOURCE
#include <dlfcn.h>

__attribute__((visibility("default"))) void* untouched_dlsym(void* handle, const char* name) { return dlsym(handle, name); }

__attribute__((visibility("default"))) void* untouched_dlvsym(void* handle, const char* name, const char* version) {
  return dlvsym(handle, name, version);
}
