#include "shim/hook/doors.hpp"

#include "shim/gate/gate.hpp"
#include "shim/hook/driver_library.hpp"
#include "shim/hook/exports.hpp"
#include "shim/hook/generated/shim_calls.hpp"
#include "shim/hook/process.hpp"
#include "shim/hook/query.hpp"

namespace vramd::shim::hook {
namespace {

template <Entry entry, auto wrapper>
struct Door;

template <Entry entry, class... Arguments, CUresult (*wrapper)(Arguments...)>
struct Door<entry, wrapper> {
  static CUresult enter(Arguments... arguments) {
    if (passes_through()) [[unlikely]]
      return real<entry>()(arguments...);
    return wrapper(arguments...);
  }
};

// Work for the GPU: through the gate, to the wrapper where there is one.
template <Entry entry, gate::Kind kind, auto target>
struct SubmissionDoor;

template <Entry entry, gate::Kind kind, class... Arguments, CUresult (*target)(Arguments...)>
struct SubmissionDoor<entry, kind, target> {
  static CUresult enter(Arguments... arguments) {
    if (passes_through()) [[unlikely]]
      return real<entry>()(arguments...);
    const gate::Pass pass(kind);
    return target(arguments...);
  }
};

template <Entry entry, class Type = typename Signature<entry>::Type>
struct Forward;

template <Entry entry, class... Arguments>
struct Forward<entry, CUresult (*)(Arguments...)> {
  static CUresult call(Arguments... arguments) { return real<entry>()(arguments...); }
};

}  // namespace

void* door_of(Entry entry) {
  switch (entry) {
#define HOOK(name)  \
  case Entry::name: \
    return reinterpret_cast<void*>(&Door<Entry::name, &calls::name>::enter);
#include "shim/hook/generated/hooked.inc"
#undef HOOK
#define SUBMIT(name, kind) \
  case Entry::name:        \
    return reinterpret_cast<void*>(&SubmissionDoor<Entry::name, gate::Kind::kind, &Forward<Entry::name>::call>::enter);
#define SUBMIT_HOOK(name, kind) \
  case Entry::name:             \
    return reinterpret_cast<void*>(&SubmissionDoor<Entry::name, gate::Kind::kind, &calls::name>::enter);
#include "shim/hook/generated/submissions.inc"
#undef SUBMIT
#undef SUBMIT_HOOK
    case Entry::cuGetProcAddress:
      return reinterpret_cast<void*>(&Door<Entry::cuGetProcAddress, &query::cuGetProcAddress>::enter);
    case Entry::cuGetProcAddress_v2:
      return reinterpret_cast<void*>(&Door<Entry::cuGetProcAddress_v2, &query::cuGetProcAddress_v2>::enter);
    default: return nullptr;
  }
}

void* handed_out(Entry entry) {
  void* exported = export_of(entry);
  return exported != nullptr ? exported : door_of(entry);
}

}  // namespace vramd::shim::hook
