// What the tests of the hook need to know about it from outside: they run with libvramd.so preloaded and link
// none of it.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "shim/hook/vramd_hook.h"

namespace vramd::testing {

// Throws with the loader's words if there is none.
inline void* open_library(const char* path, int flags = RTLD_NOW | RTLD_LOCAL) {
  void* handle = dlopen(path, flags);
  if (handle == nullptr) throw std::runtime_error(dlerror());
  return handle;
}

// dlsym and dlvsym as they are without libvramd.so.
inline void* untouched_dlsym(void* handle, const char* name) {
  static const auto function = reinterpret_cast<void* (*)(void*, const char*)>(
      dlsym(open_library(HOOK_UNTOUCHED_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND), "untouched_dlsym"));
  return function(handle, name);
}

inline void* untouched_dlvsym(void* handle, const char* name, const char* version) {
  static const auto function = reinterpret_cast<void* (*)(void*, const char*, const char*)>(
      dlsym(open_library(HOOK_UNTOUCHED_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND), "untouched_dlvsym"));
  return function(handle, name, version);
}

inline const std::set<std::string>& hooked_names() {
  static const std::set<std::string> names = {
      "cuGetProcAddress",
      "cuGetProcAddress_v2",
#define HOOK(name) #name,
#define SUBMIT(name, kind) #name,
#define SUBMIT_HOOK(name, kind) #name,
#include "shim/hook/generated/hooked.inc"
#include "shim/hook/generated/submissions.inc"
#undef HOOK
#undef SUBMIT
#undef SUBMIT_HOOK
  };
  return names;
}

inline const std::vector<std::string>& driver_names() {
  static const std::vector<std::string> names = {
#define ENTRY(name) #name,
#include "shim/hook/generated/entries.inc"
#undef ENTRY
  };
  return names;
}

// libvramd.so's own function of this name.
inline void* exported_by_shim(const std::string& name) { return dlsym(RTLD_DEFAULT, name.c_str()); }

inline std::string file_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
  const char* slash = std::strrchr(info.dli_fname, '/');
  return slash == nullptr ? info.dli_fname : slash + 1;
}

inline vramd_hook_counts hook_counts() {
  using Statistics = std::uint64_t(vramd_hook_counts*, std::uint64_t);
  const auto statistics = reinterpret_cast<Statistics*>(exported_by_shim("vramd_hook_statistics"));
  if (statistics == nullptr) throw std::runtime_error("libvramd.so is not preloaded");
  vramd_hook_counts counts{};
  statistics(&counts, sizeof(counts));
  return counts;
}

}  // namespace vramd::testing
