// The decisions behind the assembly entry points of trampolines_x86_64.S. The structures are returned in
// rax:rdx.
#pragma once

namespace vramd::shim::hook {

// Either `answer` is what dlsym returns, or it is nullptr and the call goes on, untouched, in `forward`.
struct LookupDecision {
  void* answer;
  void* forward;
};

}  // namespace vramd::shim::hook

extern "C" {

// dlsym(handle, name), called from `caller`.
vramd::shim::hook::LookupDecision vramd_decide_dlsym(void* handle, const char* name, const void* caller);
// dlvsym(handle, name, version), called from `caller`.
vramd::shim::hook::LookupDecision vramd_decide_dlvsym(void* handle, const char* name, const char* version, const void* caller);

// The first call of an exported driver name, and each further one until the driver is there: where it shall
// go.
void* vramd_resolve_export(unsigned long index);

}  // extern "C"
