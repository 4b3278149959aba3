// The C library's own dynamic-loading functions. Calling them by name would bind to our exports (a preloaded
// definition without version satisfies even a reference like dlsym@GLIBC_2.2.5), and from glibc 2.34 on to
// versions that older systems lack. So they are read from the tables of libc.so.6, or libdl.so.2 before 2.34.
#pragma once

#include <dlfcn.h>

namespace vramd::shim::hook {

using Dlsym = void*(void* handle, const char* name);
using Dlvsym = void*(void* handle, const char* name, const char* version);
using Dlopen = void*(const char* path, int flags);
using Dladdr1 = int(const void* address, Dl_info* info, void** extra, int flags);

// Never nullptr: where a process has no dynamic loading at all, these find nothing.
struct Libc {
  // What a program would reach without us: another preloaded library's function, if one comes after us, else
  // the genuine one.
  Dlsym* dlsym;
  Dlvsym* dlvsym;
  // Genuine.
  Dlopen* dlopen;
  Dladdr1* dladdr1;
};

// Found at the first call, cheap afterwards. Any thread.
Libc libc();

}  // namespace vramd::shim::hook
