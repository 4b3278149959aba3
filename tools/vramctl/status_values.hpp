// The daemon's status as values. What the text lacks is empty or zero: older and newer daemons are read
// alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vramd::ctl {

struct DeviceStatus {
  std::uint64_t index = 0;
  std::string uuid, name;
  std::uint64_t total = 0, free = 0, reserved = 0, leased = 0, cached = 0, stranded = 0, context = 0;
};

struct SessionDevice {
  std::uint64_t index = 0;
  std::string source;
  std::uint64_t leased = 0, charged = 0;
  std::optional<std::uint64_t> limit;
};

struct SessionStatus {
  std::uint64_t id = 0, pid = 0;
  std::string user, command, container, job, mode, priority;
  std::vector<SessionDevice> devices;
};

struct DaemonStatus {
  std::string version, mode, config_file, http;
  std::uint64_t pid = 0, uptime_seconds = 0;
  std::optional<bool> last_reload_successful;
  std::vector<std::pair<std::string, std::string>> environment;  // what sessions need to find a simulated GPU
  std::vector<DeviceStatus> devices;
  std::vector<SessionStatus> sessions;
  std::uint64_t hits = 0, misses = 0, out_of_memory = 0;
};

// Empty when the text is no JSON object.
std::optional<DaemonStatus> read_status(const std::string& text);

// The text again, indented, for --json. Empty when it is no JSON.
std::string pretty_json(const std::string& text);

}  // namespace vramd::ctl
