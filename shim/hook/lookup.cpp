#include "shim/hook/lookup.hpp"

#include <atomic>
#include <cerrno>

#include "shim/hook/doors.hpp"
#include "shim/hook/driver_library.hpp"
#include "shim/hook/libc.hpp"
#include "shim/hook/loaded_object.hpp"
#include "shim/hook/process.hpp"
#include "shim/hook/statistics.hpp"

// Where each trampoline jumps; empty until its first call.
extern "C" {
constinit std::atomic<void*> vramd_trampoline_targets[vramd::shim::hook::kEntryCount];
}

namespace vramd::shim::hook {
namespace {

bool called_by_driver(const void* caller) {
  Dl_info info;
  void* found = nullptr;
  if (libc().dladdr1(caller, &info, &found, RTLD_DL_LINKMAP) == 0) return false;
  const auto* map = static_cast<const link_map*>(found);
  return is_driver_or_helper({map->l_addr, map->l_ld, map->l_name});
}

// The hooked entry that this look-up may be about. RTLD_DEFAULT finds our exports by itself; RTLD_NEXT is
// relative to the caller, which only an untouched call can tell.
std::optional<Entry> candidate(void* handle, const char* name) {
  if (name == nullptr || name[0] != 'c' || name[1] != 'u') return std::nullopt;  // almost all calls end here
  if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) return std::nullopt;
  const std::optional<Entry> entry = find_entry(name);
  if (!entry || !is_hooked(*entry) || disabled() || OwnCall::active()) return std::nullopt;
  return entry;
}

template <class LookUp>
void* decide(void* handle, const char* name, const void* caller, LookUp&& look_up) {
  const std::optional<Entry> entry = candidate(handle, name);
  if (!entry || called_by_driver(caller)) return nullptr;
  count(Counter::lookups);
  void* found = look_up();
  if (found == nullptr || !belongs_to_driver(found)) return nullptr;
  remember(*entry, found);
  count(Counter::lookup_replacements);
  count_handed_out(*entry);
  return handed_out(*entry);
}

}  // namespace
}  // namespace vramd::shim::hook

extern "C" {

using namespace vramd::shim::hook;

LookupDecision vramd_decide_dlsym(void* handle, const char* name, const void* caller) {
  const Libc next = libc();
  void* answer = decide(handle, name, caller, [&] { return next.dlsym(handle, name); });
  return {answer, reinterpret_cast<void*>(next.dlsym)};
}

LookupDecision vramd_decide_dlvsym(void* handle, const char* name, const char* version, const void* caller) {
  const Libc next = libc();
  void* answer = decide(handle, name, caller, [&] { return next.dlvsym(handle, name, version); });
  return {answer, reinterpret_cast<void*>(next.dlvsym)};
}

void* vramd_resolve_export(unsigned long index) {
  const int saved_errno = errno;
  const auto entry = static_cast<Entry>(index);
  void* target = disabled() ? nullptr : door_of(entry);
  const bool lasting = target != nullptr || real_entry(name_of(entry)) != nullptr;
  if (target == nullptr) target = real_or_refusal(entry);
  // A refusal is not kept: the next call asks again.
  if (lasting) vramd_trampoline_targets[index].store(target, std::memory_order_relaxed);
  errno = saved_errno;
  return target;
}

}  // extern "C"
