#include "daemon/cgroup.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace vramd {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

// Container runtimes name containers by 12 to 64 hexadecimal digits.
bool is_container_id(std::string_view text) {
  return text.size() >= 12 && text.size() <= 64 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::string named(std::string_view runtime, std::string_view id) { return std::string(runtime) + "-" + std::string(id); }

// The container that `component` names, given the one above it. Empty when it names none.
std::string container_in(std::string_view parent, std::string_view component) {
  // systemd driver: "docker-<id>.scope", also without ".scope". Monitors ("crio-conmon-<id>") have no bare
  // id.
  for (const std::string_view runtime : {"docker", "cri-containerd", "crio", "libpod"}) {
    std::string_view rest = component;
    if (!take_prefix(rest, runtime) || !take_prefix(rest, "-")) continue;
    if (rest.size() > 6 && rest.substr(rest.size() - 6) == ".scope") rest.remove_suffix(6);
    if (is_container_id(rest)) return named(runtime, rest);
  }
  // cgroupfs driver: "/docker/<id>", "/kubepods/burstable/pod<uid>/<id>".
  if (is_container_id(component)) {
    if (parent == "docker") return named("docker", component);
    if (parent.substr(0, 3) == "pod") return named("kubepods", component);
  }
  // LXC: "lxc.payload.<name>", older "/lxc/<name>".
  std::string_view name = component;
  if (take_prefix(name, "lxc.payload.") && !name.empty()) return named("lxc", name);
  if (parent == "lxc" && !component.empty()) return named("lxc", component);
  return {};
}

std::string outermost_container(std::string_view path) {
  std::string_view parent;
  for (const std::string_view component : split(path, '/')) {
    std::string found = container_in(parent, component);
    if (!found.empty()) return found;
    parent = component;
  }
  return {};
}

}  // namespace

CgroupPlace parse_cgroup(std::string_view text) {
  // "id:controllers:path"; the path may hold colons.
  std::vector<std::string_view> paths;
  for (const std::string_view line : split(text, '\n')) {
    const auto first = line.find(':');
    if (first == std::string_view::npos) continue;
    const auto second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view path = line.substr(second + 1);
    if (line.substr(0, first) == "0" && second == first + 1)
      paths.insert(paths.begin(), path);
    else
      paths.push_back(path);
  }
  CgroupPlace place{"/", "host"};
  if (paths.empty()) return place;
  place.path = paths.front();
  if (place.path == "/") {
    const auto longest = std::max_element(paths.begin(), paths.end(), [](auto a, auto b) { return a.size() < b.size(); });
    place.path = *longest;
  }
  for (const std::string_view path : paths) {
    std::string container = outermost_container(path);
    if (container.empty()) continue;
    place.container = std::move(container);
    break;
  }
  return place;
}

}  // namespace vramd
