// The cards that can be simulated.
#pragma once

#include <cstdint>
#include <string>

namespace simgpu {

// What the driver's own path reaches with pageable memory, as a share of the link. Assumed from one RTX 4090: 17.1 of 23.6 GB/s
// to the device, 11.3 of 26.6 to the host (copies of 4 MiB, cuda-oxide).
inline constexpr double kPageableToDevice = 0.72, kPageableToHost = 0.42;

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

  // Double data rate; nine tenths of the theoretical figure is what copies reach. Assumed.
  double memory_bytes_per_second() const { return 0.9 * memory_clock_khz * 1e3 * 2 * bus_bits / 8; }
};

// nullptr when there is none of this name.
const Profile* find_profile(const std::string& name);
// "a, b, c"
std::string profile_names();

}  // namespace simgpu
