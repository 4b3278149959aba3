#include "tools/vramctl/who.hpp"

#include <dirent.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "policies/file/text.hpp"
#include "tools/vramctl/daemon.hpp"
#include "tools/vramctl/format.hpp"
#include "tools/vramctl/process.hpp"

namespace vramd::ctl {
namespace {

using policy::printable;
using Json = nlohmann::ordered_json;

struct Use {
  std::uint64_t sessions = 0, leased = 0, charged = 0;
};

std::map<std::string, Use> by_user(const DaemonStatus& status) {
  std::map<std::string, Use> users;
  for (const SessionStatus& session : status.sessions) {
    Use& use = users[session.user];
    ++use.sessions;
    for (const SessionDevice& device : session.devices) {
      use.leased += device.leased;
      use.charged += device.charged;
    }
  }
  return users;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::optional<DaemonStatus> status_or_trouble(const std::string& socket) {
  const auto answer = ask_daemon(socket_path(socket));
  if (!answer) {
    std::fprintf(stderr, "vramctl: %s\n  %s\n", answer.error().what.c_str(), answer.error().remedy.c_str());
    return std::nullopt;
  }
  auto status = read_status(answer->status);
  if (!status) std::fprintf(stderr, "vramctl: the daemon's status is no JSON\n  use vramctl and vramd of the same version\n");
  return status;
}

std::string user_of(const std::string& folder) {
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) return "?";
  const passwd* entry = ::getpwuid(about.st_uid);
  return entry == nullptr ? std::to_string(about.st_uid) : entry->pw_name;
}

// Calls visit(name) for what a folder holds, without its dots.
template <class Visit>
void each_entry(const std::string& folder, Visit visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (!open) return;
  while (const dirent* entry = ::readdir(open.get()))
    if (entry->d_name[0] != '.') visit(std::string(entry->d_name));
}

bool has_one_open(const std::string& folder, const std::vector<std::string>& prefixes) {
  bool found = false;
  each_entry(folder, [&](const std::string& fd) {
    char target[PATH_MAX];
    const ssize_t length = found ? 0 : ::readlink((folder + '/' + fd).c_str(), target, sizeof target);
    if (length <= 0) return;
    const std::string_view path(target, static_cast<std::size_t>(length));
    found = std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& prefix) { return path.starts_with(prefix); });
  });
  return found;
}

// Where a driver's files are: the genuine one's, or a simulated machine's.
std::vector<std::string> gpu_files(const DaemonStatus& status) {
  for (const auto& [name, value] : status.environment)
    if (name == "SIM_DIR" && value.size() > 1) return {value + '/'};
  return {"/dev/nvidia"};
}

std::uint64_t memory_of(const SessionStatus& session) {
  std::uint64_t sum = 0;
  for (const SessionDevice& device : session.devices) sum += device.leased + device.charged;
  return sum;
}

}  // namespace

std::string who_text(const DaemonStatus& status) {
  const auto users = by_user(status);
  std::vector<std::pair<std::string, Use>> sorted(users.begin(), users.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.leased + a.second.charged > b.second.leased + b.second.charged;
  });
  std::string text = padded("USER", 20) + padded("SESSIONS", 10) + padded("LEASED", 12) + "OUTSIDE THE POOL\n";
  for (const auto& [user, use] : sorted)
    text += padded(printable(user), 20) + padded(std::to_string(use.sessions), 10) + padded(size_text(use.leased), 12) +
            size_text(use.charged) + '\n';
  return text;
}

std::vector<GpuProcess> processes_with_gpu(const std::string& proc, const std::vector<std::string>& prefixes) {
  std::vector<GpuProcess> found;
  each_entry(proc, [&](const std::string& name) {
    if (name.find_first_not_of("0123456789") != std::string::npos) return;
    const std::string folder = proc + '/' + name;
    if (!has_one_open(folder + "/fd", prefixes)) return;
    const int pid = std::atoi(name.c_str());
    const auto facts = read_process(proc, pid);
    if (facts) found.push_back({pid, facts->name, user_of(folder)});
  });
  std::sort(found.begin(), found.end(), [](const GpuProcess& a, const GpuProcess& b) { return a.pid < b.pid; });
  return found;
}

int who(const WhoOptions& options) {
  const auto status = status_or_trouble(options.socket);
  if (!status) return kFinding;
  if (!options.json) {
    std::fputs(who_text(*status).c_str(), stdout);
    return kOk;
  }
  Json list = Json::array();
  for (const auto& [user, use] : by_user(*status))
    list.push_back({{"user", user}, {"sessions", use.sessions}, {"leased", use.leased}, {"charged", use.charged}});
  std::printf("%s\n", list.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  return kOk;
}

int ps(const PsOptions& options) {
  const auto status = status_or_trouble(options.socket);
  if (!status) return kFinding;
  Json list = Json::array();
  std::string text = padded("PID", 10) + padded("USER", 16) + padded("SESSION", 10) + padded("MEMORY", 12) + "COMMAND\n";
  for (const GpuProcess& process : processes_with_gpu("/proc", gpu_files(*status))) {
    if (static_cast<std::uint64_t>(process.pid) == status->pid) continue;
    const auto session = std::find_if(status->sessions.begin(), status->sessions.end(), [&](const SessionStatus& each) {
      return each.pid == static_cast<std::uint64_t>(process.pid);
    });
    const bool has_session = session != status->sessions.end();
    if (options.orphans && has_session) continue;
    const std::uint64_t memory = has_session ? memory_of(*session) : 0;
    text += padded(std::to_string(process.pid), 10) + padded(printable(process.user), 16) +
            padded(has_session ? std::to_string(session->id) : "none", 10) + padded(has_session ? size_text(memory) : "?", 12) +
            printable(process.name) + '\n';
    Json entry{{"pid", process.pid}, {"user", process.user}, {"command", process.name}};
    entry["session"] = has_session ? Json(session->id) : Json(nullptr);
    entry["bytes"] = has_session ? Json(memory) : Json(nullptr);
    list.push_back(std::move(entry));
  }
  if (options.json) text = list.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
  std::fputs(text.c_str(), stdout);
  return options.orphans && !list.empty() ? kFinding : kOk;
}

}  // namespace vramd::ctl
