#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "policies/file/policy.hpp"
#include "policies/file/text.hpp"
#include "tools/vramctl/checks.hpp"
#include "tools/vramctl/daemon.hpp"
#include "tools/vramctl/format.hpp"

namespace vramd::ctl {
namespace {

constexpr const char* kSocket = "socket";
constexpr const char* kDaemon = "daemon";
constexpr const char* kPolicy = "policy file";

CheckResult socket_result(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) {
    const bool absent = errno == ENOENT;
    return finding(
        kSocket, path + ": " + std::strerror(errno),
        absent ? "start vramd, or name its socket with --socket or VRAMD_SOCKET" : "the folder must be open to this user");
  }
  if (!S_ISSOCK(about.st_mode)) return finding(kSocket, path + " is no socket", "remove it and start vramd again");
  char mode[8];
  std::snprintf(mode, sizeof mode, "%03o", static_cast<unsigned>(about.st_mode & 0777));
  if (::access(path.c_str(), W_OK) != 0)
    return finding(kSocket, path + " has mode " + mode + " and may not be used by this user", "join the group that owns it");
  return ok(kSocket, path + ", mode " + mode);
}

}  // namespace

void check_daemon(const DoctorOptions& options, Results& results, std::optional<DaemonStatus>& status) {
  const std::string path = socket_path(options.socket);
  results.push_back(socket_result(path));
  const auto answer = ask_daemon(path);
  if (!answer) {
    if (results.back().state == CheckResult::State::finding) {
      results.push_back(skipped(kDaemon, "its socket cannot be used; programs run on memory of their own"));
    } else {
      results.push_back(finding(kDaemon, answer.error().what, answer.error().remedy));
    }
    return;
  }
  status = read_status(answer->status);
  if (!status) {
    results.push_back(finding(kDaemon, "its status is no JSON", "use vramctl and vramd of the same version"));
    return;
  }
  if (!answer->may_choose_libraries()) status->environment.clear();
  const std::string version = status->version.empty() ? "unknown" : policy::printable(status->version);
  if (version != VRAMD_VERSION) {
    results.push_back(finding(kDaemon, "version " + version + " answers, this is vramctl " VRAMD_VERSION,
                              "restart the daemon after an update: sessions keep their memory"));
    return;
  }
  results.push_back(ok(kDaemon, "version " + version + ", pid " + std::to_string(status->pid) + ", up " +
                                    duration_text(status->uptime_seconds)));
}

void check_policy(const std::string& asked, const std::optional<DaemonStatus>& status, Results& results) {
  const std::string file = !asked.empty() ? asked : status ? status->config_file : std::string{};
  if (file.empty()) {
    results.push_back(
        skipped(kPolicy, status ? "the daemon has none and uses its defaults" : "none named; --config names one"));
    return;
  }
  if (asked.empty() && !file.starts_with('/')) {
    results.push_back(skipped(kPolicy, "the daemon names it " + policy::in_quotes(file) +
                                           ", from a folder that is not known here; --config names it"));
    return;
  }
  const policy::Parsed parsed = policy::parse_file(file);
  const std::string first = parsed.diagnostics.empty() ? "" : parsed.diagnostics.front().text(file);
  if (!parsed.policy) {
    results.push_back(finding(kPolicy, first, "vramctl policy check " + shell_quoted(file) + " names all problems"));
  } else if (asked.empty() && status && status->last_reload_successful == false) {
    results.push_back(finding(kPolicy, file + " is good now, but its last reload failed", "reload it: systemctl reload vramd"));
  } else {
    const std::size_t warnings = parsed.diagnostics.size();
    results.push_back(ok(kPolicy, file + (warnings == 0 ? " is good"
                                                        : " is good, with " + std::to_string(warnings) +
                                                              (warnings == 1 ? " warning" : " warnings"))));
  }
}

}  // namespace vramd::ctl
