// The exported functions of libvramd.so that are vramd's own. Those of the driver and of the C library are in
// hook/trampolines_x86_64.S; exports.map lists all.
#include <cstring>

#include "shim/gate/gate.hpp"
#include "shim/hook/statistics.hpp"

using namespace vramd::shim;

extern "C" {

std::uint64_t vramd_hook_statistics(vramd_hook_counts* counts, std::uint64_t size) {
  const vramd_hook_counts now = hook::read_counts();
  if (counts != nullptr) std::memcpy(counts, &now, size < sizeof(now) ? size : sizeof(now));
  return sizeof(now);
}

std::uint64_t vramd_hook_handed_out(const char* exported_name) {
  if (exported_name == nullptr) return 0;
  const std::optional<hook::Entry> entry = hook::find_entry(exported_name);
  return entry ? hook::times_handed_out(*entry) : 0;
}

void vramd_gate_close(void) { gate::close(); }
void vramd_gate_open(void) { gate::open(); }
std::uint64_t vramd_gate_waiting(void) { return gate::waiting(); }

}  // extern "C"
