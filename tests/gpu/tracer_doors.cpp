// Takes the place of shim/hook/doors.cpp: behind every driver name stands a function that writes the call down and goes on to
// the driver. The rest of the hook is the shim's, so what this tracer sees is what the shim would see.
#include "shim/hook/driver_library.hpp"
#include "shim/hook/exports.hpp"
#include "shim/hook/doors.hpp"
#include "shim/hook/process.hpp"
#include "shim/hook/query.hpp"
#include "tests/gpu/tracer_record.hpp"

namespace vramd::shim::hook {
namespace {

template <Entry entry, class Type>
struct Traced;

template <Entry entry, class... Arguments>
struct Traced<entry, CUresult (*)(Arguments...)> {
  static CUresult enter(Arguments... arguments) {
    if (passes_through()) return real<entry>()(arguments...);
    const std::uint64_t place = trace::begin(entry);
    CUresult result;
    {
      const OwnCall own_call;  // what the driver calls inside is not the program's doing
      result = real<entry>()(arguments...);
    }
    trace::finish(place, result);
    return result;
  }
};

// Questions have a table of their own.
CUresult ask(const char* symbol, void** function, int version, cuuint64_t flags) {
  const CUresult result = query::cuGetProcAddress(symbol, function, version, flags);
  trace::note_query(symbol, version, flags, result);
  return result;
}

CUresult ask_v2(const char* symbol, void** function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  const CUresult result = query::cuGetProcAddress_v2(symbol, function, version, flags, status);
  trace::note_query(symbol, version, flags, result);
  return result;
}

}  // namespace

void* door_of(Entry entry) {
  switch (entry) {
    case Entry::cuGetExportTable: return nullptr;  // private between NVIDIA's runtime and driver
    case Entry::cuGetProcAddress: return reinterpret_cast<void*>(&ask);
    case Entry::cuGetProcAddress_v2: return reinterpret_cast<void*>(&ask_v2);
    default: break;
  }
  switch (entry) {
#define ENTRY(name) \
  case Entry::name: \
    return reinterpret_cast<void*>(&Traced<Entry::name, Signature<Entry::name>::Type>::enter);
#include "shim/hook/generated/entries.inc"
#undef ENTRY
  }
  return nullptr;
}

void* handed_out(Entry entry) {
  void* exported = export_of(entry);
  return exported != nullptr ? exported : door_of(entry);
}

}  // namespace vramd::shim::hook
