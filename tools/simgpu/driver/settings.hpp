// The environment of the simulator, read once per process. README.md has the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace simgpu {

struct Latencies {  // microseconds, slept inside the call; 0 = none
  double create = 0, map = 0, access = 0, unmap = 0;
};

struct Settings {
  std::string folder;   // SIM_DIR/simgpu-SIM_NAME: all files of one simulated machine
  std::string machine;  // SIM_NAME
  std::string profile;
  std::optional<std::uint64_t> capacity;  // bytes
  int devices = 1;
  int version = 13000;
  std::uint64_t context_bytes = 0;
  bool trace = false;
  bool poison = false;
  bool strict = false;
  bool stale = false;  // what is created keeps the bytes of what was released
  bool protect = false;
  bool host_numa = true;
  bool vmm_needs_context = false;
  std::string log_path, counts_path, timeline_path, failures;
  std::uint64_t seed = 1;  // of the failures by probability
  std::optional<std::string> visible_devices;
  Latencies latency;
  int compute_mode = 0;         // CUcomputemode
  std::uint64_t linger_ms = 0;  // of a killed process's last operations
  bool time = false;            // copies and launches last as long as on the card
  double launch_us = 0;         // at least, with `time`
};

const Settings& settings();

}  // namespace simgpu
