#include "tools/vramctl/process.hpp"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace vramd::ctl {
namespace {

constexpr std::size_t kMostBytes = 64u << 20;  // of a file in /proc that another process fills

std::optional<std::string> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text;
  char buffer[1 << 16];
  while (text.size() < kMostBytes && (file.read(buffer, sizeof buffer) || file.gcount() > 0))
    text.append(buffer, static_cast<std::size_t>(file.gcount()));
  return file.bad() ? std::nullopt : std::optional(text);
}

std::string link_target(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
  return length <= 0 ? std::string{} : std::string(target, static_cast<std::size_t>(length));
}

// "Name:\tpython3" of /proc/PID/status.
std::string status_value(const std::string& status, const std::string& key) {
  std::istringstream lines(status);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key + ":")) continue;
    const std::size_t start = line.find_first_not_of(" \t", key.size() + 1);
    return start == std::string::npos ? std::string{} : line.substr(start);
  }
  return {};
}

// The last column of /proc/PID/maps; names that are no paths ([heap]) are left out.
std::vector<std::string> mapped_files(const std::string& maps) {
  std::vector<std::string> files;
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t path = line.find('/');
    if (path == std::string::npos) continue;
    std::string file = line.substr(path);
    if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(std::move(file));
  }
  return files;
}

std::vector<std::pair<std::string, std::string>> variables(const std::string& environ) {
  std::vector<std::pair<std::string, std::string>> all;
  std::istringstream items(environ);
  for (std::string item; std::getline(items, item, '\0');) {
    const std::size_t equals = item.find('=');
    if (equals != std::string::npos) all.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return all;
}

}  // namespace

const char* ProcessFacts::variable(const std::string& wanted) const {
  for (const auto& [variable, value] : environment)
    if (variable == wanted) return value.c_str();
  return nullptr;
}

std::optional<ProcessFacts> read_process(const std::string& proc, int pid) {
  const std::string folder = proc + '/' + std::to_string(pid);
  const auto status = contents(folder + "/status");
  if (!status) return std::nullopt;
  ProcessFacts facts;
  facts.pid = pid;
  facts.parent = std::atoi(status_value(*status, "PPid").c_str());
  facts.name = status_value(*status, "Name");
  facts.has_memory = !status_value(*status, "VmSize").empty();
  facts.root = folder + "/root";
  facts.executable = link_target(folder + "/exe");
  const auto maps = contents(folder + "/maps");
  const auto environ = contents(folder + "/environ");
  facts.readable = maps && environ;
  if (!facts.readable) return facts;
  facts.files = mapped_files(*maps);
  facts.environment = variables(*environ);
  return facts;
}

}  // namespace vramd::ctl
