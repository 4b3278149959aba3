#include "daemon/status.hpp"

#include <nlohmann/json.hpp>

namespace vramd {
namespace {

using Json = nlohmann::ordered_json;

Json device_json(const DeviceSnapshot& device) {
  return {{"index", device.index},
          {"uuid", device.uuid},
          {"name", device.name},
          {"pci_bus_id", device.pci_bus_id},
          {"total", device.total.value},
          {"free", device.free.value},
          {"reserved", device.totals.reserved().value},
          {"leased", device.totals.leased.value},
          {"cached", device.totals.cached.value},
          {"charged", device.totals.charged.value},
          {"stranded", device.stranded.value},
          {"context", device.context},
          {"sessions", device.sessions}};
}

Json session_json(const SessionSnapshot& session) {
  Json devices = Json::array();
  for (const SessionShare& share : session.devices) {
    Json limit = nullptr;  // no limit
    if (share.limit != chunks::kUnlimited) limit = share.limit.value;
    devices.push_back({{"index", share.index},
                       {"source", share.source},
                       {"leased", share.leased.value},
                       {"charged", share.charged.value},
                       {"limit", limit}});
  }
  return {{"id", session.id},     {"pid", session.pid},         {"uid", session.uid},
          {"user", session.user}, {"command", session.command}, {"container", session.container},
          {"job", session.job},   {"mode", session.mode},       {"priority", session.priority},
          {"devices", devices}};
}

}  // namespace

std::string status_json(const Snapshot& snapshot) {
  chunks::Counts sums;
  Json devices = Json::array(), sessions = Json::array();
  for (const DeviceSnapshot& device : snapshot.devices) {
    devices.push_back(device_json(device));
    sums.hit += device.counts.hit;
    sums.miss += device.counts.miss;
    sums.oom += device.counts.oom;
  }
  for (const SessionSnapshot& session : snapshot.sessions) sessions.push_back(session_json(session));
  const Json status = {
      {"version", snapshot.version},
      {"pid", snapshot.pid},
      {"epoch", snapshot.epoch},
      {"uptime_seconds", snapshot.uptime_seconds},
      {"driver_version", snapshot.driver_version},
      {"mode", snapshot.mode},
      {"config",
       {{"file", snapshot.config_file},
        {"reloads", snapshot.reloads},
        {"last_reload_successful", snapshot.last_reload_successful}}},
      {"http", snapshot.http},
      {"environment", snapshot.environment.empty() ? Json::object() : Json(snapshot.environment)},
      {"devices", devices},
      {"sessions", sessions},
      {"grants", {{"hit", sums.hit}, {"miss", sums.miss}, {"oom", sums.oom}}},
  };
  // Commands and jobs are other people's bytes: what is no UTF-8 is replaced, never an error.
  return status.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace vramd
