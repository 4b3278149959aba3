// The environment of the process, read once. Values that make no sense are reported and ignored, never fatal.
#pragma once

#include "allocator/base/units.hpp"
#include "allocator/protocol/messages.hpp"
#include "shim/client/log.hpp"

namespace vramd::shim {

struct Settings {
  protocol::Mode mode = protocol::Mode::unset;              // VRAMD_MODE: off, observe, pool
  protocol::Priority priority = protocol::Priority::unset;  // VRAMD_PRIORITY: batch, normal, interactive
  LogLevel log = LogLevel::warn;                            // VRAMD_LOG: off, error, warn, info, debug
  Bytes limit;               // VRAMD_LIMIT, or CUDA_DEVICE_MEMORY_LIMIT: per device; 0 = none. Unused when a percentage
  double limit_percent = 0;  // VRAMD_LIMIT=75%: of each device; 0 = none
  char socket[108] = {};     // VRAMD_SOCKET, or the default path
  char job[64] = {};         // VRAMD_JOB

  Bytes limit_of(Bytes device_total) const;  // {0} = none
};

// Reads the environment and logs what it does not understand.
Settings read_settings();

// "12GiB", "512MiB", "64KiB", "1048576", also HAMi's "12g" and "512m" (1024-based). False when it is none of these or 0.
bool parse_size(const char* text, Bytes& out);

}  // namespace vramd::shim
