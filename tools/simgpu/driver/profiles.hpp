// The cards that can be simulated.
#pragma once

#include <cstdint>
#include <string>

namespace simgpu {

// The way to the host's memory, each direction. Assumed until measured: what PCIe cards of the kind reach with pinned memory.
struct Link {
  double mib_per_second;
  double latency_us;  // of one copy
};

struct Profile {
  const char* name;
  const char* device_name;
  std::uint64_t capacity_mib;
  int capability_major, capability_minor;
  int multiprocessors;
  int threads_per_multiprocessor;
  int clock_khz, memory_clock_khz, bus_bits;
  int l2_bytes;
  int shared_per_block_optin;
  bool vmm;
  Link link;
};

// nullptr when there is none of this name.
const Profile* find_profile(const std::string& name);
// "a, b, c"
std::string profile_names();

}  // namespace simgpu
