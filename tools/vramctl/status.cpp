#include "tools/vramctl/status.hpp"

#include <algorithm>
#include <cstdio>

#include "policies/file/text.hpp"
#include "tools/vramctl/daemon.hpp"
#include "tools/vramctl/format.hpp"

namespace vramd::ctl {
namespace {

using policy::printable;  // a session chooses its name; it must not move the reader's cursor

std::string known(const std::string& text, const char* otherwise) { return text.empty() ? otherwise : printable(text); }

std::string heading(const DaemonStatus& status) {
  std::string line = "vramd " + known(status.version, "of unknown version");
  if (status.pid != 0) line += "  pid " + std::to_string(status.pid);
  line += "  up " + duration_text(status.uptime_seconds);
  line += "  mode " + known(status.mode, "unknown");
  if (!status.http.empty()) line += "  http://" + printable(status.http) + '/';
  line += '\n';
  if (!status.config_file.empty()) line += "policy " + printable(status.config_file);
  if (status.config_file.empty()) line += "policy: built-in defaults";
  if (status.last_reload_successful == false)
    line += "  (its last reload failed and the policy before it holds; see vramctl policy check)";
  return line + '\n';
}

// As gpustat has it: index, name, use, and the parts of the use that are not leased.
std::string device_line(const DeviceStatus& device, std::size_t sessions) {
  const std::uint64_t used = device.total - std::min(device.free, device.total);
  std::string line = '[' + std::to_string(device.index) + "] " + known(device.name, "GPU");
  line += " | " + size_text(used) + " / " + size_text(device.total);
  line += " | leased " + size_text(device.leased) + ", cached " + size_text(device.cached);
  if (device.reserved != 0) line += ", reserved " + size_text(device.reserved);
  if (device.stranded != 0) line += ", stranded " + size_text(device.stranded);
  line += " | " + std::to_string(sessions) + (sessions == 1 ? " session" : " sessions");
  if (!device.uuid.empty()) line += " | " + printable(device.uuid);
  return line + '\n';
}

std::string session_line(const SessionStatus& session, const SessionDevice* device) {
  std::string line = "    #" + std::to_string(session.id) + ' ' + known(session.user, "?") + ": " + known(session.command, "?");
  line += '[' + std::to_string(session.pid) + ']';
  if (device != nullptr) {
    line += "  " + size_text(device->leased + device->charged);
    if (device->limit) line += " of " + size_text(*device->limit);
    if (device->charged != 0) line += " (" + size_text(device->charged) + " of it outside the pool)";
  }
  if (!session.job.empty()) line += "  job " + printable(session.job);
  if (!session.container.empty() && session.container != "host") line += "  container " + printable(session.container);
  if (!session.mode.empty()) line += "  " + printable(session.mode);
  if (!session.priority.empty()) line += "  " + printable(session.priority);
  if (device != nullptr && !device->source.empty()) line += "  source " + printable(device->source);
  return line + '\n';
}

const SessionDevice* on_device(const SessionStatus& session, std::uint64_t index) {
  for (const SessionDevice& device : session.devices)
    if (device.index == index) return &device;
  return nullptr;
}

}  // namespace

std::string status_text(const DaemonStatus& status) {
  std::string text = heading(status);
  for (const DeviceStatus& device : status.devices) {
    std::string lines;
    std::size_t count = 0;
    for (const SessionStatus& session : status.sessions) {
      const SessionDevice* use = on_device(session, device.index);
      if (use == nullptr) continue;
      ++count;
      lines += session_line(session, use);
    }
    text += device_line(device, count) + lines;
  }
  if (status.devices.empty()) text += "no GPU\n";
  std::string elsewhere;
  for (const SessionStatus& session : status.sessions)
    if (session.devices.empty()) elsewhere += session_line(session, nullptr);
  if (!elsewhere.empty()) text += "on no GPU yet\n" + elsewhere;
  const std::uint64_t grants = status.hits + status.misses + status.out_of_memory;
  if (grants != 0) {
    text += "grants: " + std::to_string(status.hits) + " from the pool, " + std::to_string(status.misses) +
            " from the driver, " + std::to_string(status.out_of_memory) + " refused\n";
  }
  return text;
}

int status(const StatusOptions& options) {
  const auto answer = ask_daemon(socket_path(options.socket));
  if (!answer) {
    std::fprintf(stderr, "vramctl: %s\n  %s\n", answer.error().what.c_str(), answer.error().remedy.c_str());
    return kFinding;
  }
  const auto values = read_status(answer->status);
  if (!values) {
    std::fprintf(stderr, "vramctl: the daemon's status is no JSON\n  use vramctl and vramd of the same version\n");
    return kFinding;
  }
  const std::string text = options.json ? pretty_json(answer->status) + '\n' : status_text(*values);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kOk;
}

}  // namespace vramd::ctl
