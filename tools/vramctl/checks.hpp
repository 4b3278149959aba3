// The checks of `vramctl doctor`. Each looks at one part of the host and changes nothing.
#pragma once

#include <string>
#include <vector>

#include "tools/vramctl/arguments.hpp"
#include "tools/vramctl/launch.hpp"
#include "tools/vramctl/process.hpp"
#include "tools/vramctl/status_values.hpp"

namespace vramd::ctl {

struct CheckResult {
  enum class State { ok, finding, skipped } state;
  std::string name;    // "driver library"
  std::string text;    // what was found
  std::string remedy;  // what to do; only for findings
};

inline CheckResult ok(std::string name, std::string text) {
  return {CheckResult::State::ok, std::move(name), std::move(text), {}};
}
inline CheckResult finding(std::string name, std::string text, std::string remedy) {
  return {CheckResult::State::finding, std::move(name), std::move(text), std::move(remedy)};
}
inline CheckResult skipped(std::string name, std::string text) {
  return {CheckResult::State::skipped, std::move(name), std::move(text), {}};
}

using Results = std::vector<CheckResult>;

// The daemon: reachable, of this version, its socket's permissions, its policy. `status` is filled when it
// answers.
void check_daemon(const DoctorOptions& options, Results& results, std::optional<DaemonStatus>& status);

// libvramd.so: there, loadable, not needing a newer glibc than this host has.
void check_library(Results& results);

// The driver and its GPUs, looked at in a child process whose environment has `variables` besides.
void check_driver(const std::vector<std::pair<std::string, std::string>>& variables, Results& results);

// A policy file: the one asked for, else the daemon's.
void check_policy(const std::string& asked, const std::optional<DaemonStatus>& status, Results& results);

// What the shell hands to programs: LD_PRELOAD, CUDA_INJECTION64_PATH, VRAMD_*.
void check_environment(const Lookup& environment, Results& results);

// Whether vramd is active in the process; `proc` is "/proc", or a folder that looks like it.
void check_process(const std::string& proc, int pid, const std::optional<DaemonStatus>& status, Results& results);

// Whether vramd would be active in the command, under `vramctl run`. Starts nothing.
void check_command(const std::vector<std::string>& command, const Lookup& environment, Results& results);

// Limits, kernel features, /dev/shm, container.
void check_host(Results& results);

}  // namespace vramd::ctl
