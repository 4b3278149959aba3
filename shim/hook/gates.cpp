#include "shim/hook/gates.hpp"

#include "shim/hook/driver_library.hpp"
#include "shim/hook/exports.hpp"
#include "shim/hook/generated/shim_calls.hpp"
#include "shim/hook/process.hpp"
#include "shim/hook/query.hpp"

namespace vramd::shim::hook {
namespace {

template <Entry entry, auto wrapper>
struct Gate;

template <Entry entry, class... Arguments, CUresult (*wrapper)(Arguments...)>
struct Gate<entry, wrapper> {
  static CUresult enter(Arguments... arguments) {
    if (passes_through()) [[unlikely]]
      return real<entry>()(arguments...);
    return wrapper(arguments...);
  }
};

}  // namespace

void* gate_of(Entry entry) {
  switch (entry) {
#define HOOK(name)  \
  case Entry::name: \
    return reinterpret_cast<void*>(&Gate<Entry::name, &calls::name>::enter);
#include "shim/hook/generated/hooked.inc"
#undef HOOK
    case Entry::cuGetProcAddress:
      return reinterpret_cast<void*>(&Gate<Entry::cuGetProcAddress, &query::cuGetProcAddress>::enter);
    case Entry::cuGetProcAddress_v2:
      return reinterpret_cast<void*>(&Gate<Entry::cuGetProcAddress_v2, &query::cuGetProcAddress_v2>::enter);
    default: return nullptr;
  }
}

void* handed_out(Entry entry) {
  void* exported = export_of(entry);
  return exported != nullptr ? exported : gate_of(entry);
}

}  // namespace vramd::shim::hook
