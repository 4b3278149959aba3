// The daemon at one moment, as values: what status, metrics and pages show. They agree because they read the
// same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "allocator/chunks/values.hpp"

namespace vramd {

struct DeviceSnapshot {
  std::uint32_t index = 0;
  std::string uuid, name, pci_bus_id;
  bool context = false;  // the daemon holds a context here and lends chunks
  Bytes total, free, stranded;
  chunks::Totals totals;
  chunks::Counts counts;
  std::size_t sessions = 0;
};

struct SessionShare {
  std::uint32_t index = 0;
  std::string source;
  Bytes leased, charged, limit;  // limit: chunks::kUnlimited = none
};

struct SessionSnapshot {
  std::uint64_t id = 0;
  int pid = 0;
  unsigned uid = 0;
  std::string user, command, container, job, mode, priority;
  std::vector<SessionShare> devices;
};

struct Snapshot {
  std::string version;
  int pid = 0;
  std::uint64_t epoch = 0;
  std::int64_t uptime_seconds = 0;
  std::int64_t start_time_seconds = 0;  // since 1970
  int driver_version = 0;               // cuDriverGetVersion
  std::string mode;
  bool simulated = false;
  std::string config_file;    // empty: built-in defaults
  std::uint64_t reloads = 0;  // how often the file was read again and was valid
  bool last_reload_successful = true;
  std::int64_t last_reload_success_time = 0;  // since 1970
  std::string http;
  std::map<std::string, std::string> environment;
  std::vector<DeviceSnapshot> devices;
  std::vector<SessionSnapshot> sessions;
  std::uint64_t recalls = 0, late_recalls = 0;
  std::map<std::string, std::uint64_t> dropped;  // connections closed by us, by reason
};

}  // namespace vramd
