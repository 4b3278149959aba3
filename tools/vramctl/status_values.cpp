#include "tools/vramctl/status_values.hpp"

#include <nlohmann/json.hpp>

namespace vramd::ctl {
namespace {

using Json = nlohmann::json;

const Json& member(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

std::string text(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string{};
}

std::uint64_t number(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  // A float beyond the range of the integer would be undefined; negative numbers mean nothing here.
  if (value.is_number_float() && value.get<double>() > 0 && value.get<double>() < 1e18)
    return static_cast<std::uint64_t>(value.get<double>());
  return 0;
}

SessionDevice session_device(const Json& json) {
  SessionDevice device;
  device.index = number(json, "index");
  device.source = text(json, "source");
  device.leased = number(json, "leased");
  device.charged = number(json, "charged");
  const std::uint64_t limit = number(json, "limit");
  const bool limited = member(json, "limit").is_number() && limit != UINT64_MAX;
  if (limited) device.limit = limit;
  return device;
}

SessionStatus session(const Json& json) {
  SessionStatus session;
  session.id = number(json, "id");
  session.pid = number(json, "pid");
  session.user = text(json, "user");
  session.command = text(json, "command");
  session.container = text(json, "container");
  session.job = text(json, "job");
  session.mode = text(json, "mode");
  session.priority = text(json, "priority");
  for (const Json& device : member(json, "devices")) session.devices.push_back(session_device(device));
  return session;
}

DeviceStatus device(const Json& json) {
  DeviceStatus device;
  device.index = number(json, "index");
  device.uuid = text(json, "uuid");
  device.name = text(json, "name");
  device.total = number(json, "total");
  device.free = number(json, "free");
  device.reserved = number(json, "reserved");
  device.leased = number(json, "leased");
  device.cached = number(json, "cached");
  device.stranded = number(json, "stranded");
  device.context = number(json, "context");
  return device;
}

}  // namespace

std::optional<DaemonStatus> read_status(const std::string& source) {
  const Json json = Json::parse(source, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  DaemonStatus status;
  status.version = text(json, "version");
  status.mode = text(json, "mode");
  status.http = text(json, "http");
  status.pid = number(json, "pid");
  status.uptime_seconds = number(json, "uptime_seconds");
  const Json& config = member(json, "config");
  status.config_file = text(config, "file");
  const Json& reload = member(config, "last_reload_successful");
  if (reload.is_boolean()) status.last_reload_successful = reload.get<bool>();
  if (reload.is_number()) status.last_reload_successful = reload.get<double>() != 0;
  const Json& environment = member(json, "environment");
  if (environment.is_object()) {
    for (const auto& [name, value] : environment.items())
      if (value.is_string()) status.environment.emplace_back(name, value.get<std::string>());
  }
  for (const Json& item : member(json, "devices")) status.devices.push_back(device(item));
  for (const Json& item : member(json, "sessions")) status.sessions.push_back(session(item));
  const Json& grants = member(json, "grants");
  status.hits = number(grants, "hit");
  status.misses = number(grants, "miss");
  status.out_of_memory = number(grants, "oom");
  return status;
}

std::string pretty_json(const std::string& source) {
  const auto json = nlohmann::ordered_json::parse(source, nullptr, false);
  if (json.is_discarded()) return {};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace vramd::ctl
