// The command line of vramctl as values. CLI11 stays behind this header.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace vramd::ctl {

// Exit codes of every command; `run` ends with the command's own code, or 126 and 127 as a shell does.
inline constexpr int kOk = 0, kFinding = 1, kUsage = 2;
inline constexpr int kNotExecutable = 126, kNotFound = 127;

struct RunOptions {
  std::string mode, limit, priority, job;  // empty = not asked for
  std::string socket;
  std::string sim_env = "daemon";  // "daemon" or "none"
  bool dry_run = false, json = false, verbose = false;
  std::vector<std::string> command;
};

struct StatusOptions {
  std::string socket;
  bool json = false;
};

struct DoctorOptions {
  std::string socket;
  std::string config;                // policy file, empty = the daemon's
  int pid = 0;                       // the process to look at; 0 = none
  std::vector<std::string> command;  // the command to look at
  bool json = false;
};

struct CalibrateOptions {
  std::string runtime = "libcudart.so.13";
  bool json = false;
};

struct PolicyCheckOptions {
  std::vector<std::string> files;
  bool json = false, strict = false;
};

struct WhoOptions {
  std::string socket;
  bool json = false;
};

struct PsOptions {
  std::string socket;
  bool json = false, orphans = false;
};

struct TrimOptions {
  std::string socket;
  std::uint64_t session = 0;  // 0 = all
  int gpu = -1;               // -1 = all
};

struct LimitOptions {
  std::string socket;
  std::uint64_t session = 0;
  std::string size;  // or "policy"
};

struct ReloadOptions {
  std::string socket;
};

struct CompletionOptions {
  std::string shell;
};

// For doctor, which looks at libraries in a child process so that only the child can crash.
struct ProbeOptions {
  std::string what;  // "driver", "library" or "submissions"
  std::string library;
};

// Nothing to do: help, version or a wrong command line has been printed.
struct Finished {
  int exit_code = kOk;
};

using Command = std::variant<RunOptions, StatusOptions, DoctorOptions, CalibrateOptions, PolicyCheckOptions, ReloadOptions,
                             WhoOptions, PsOptions, TrimOptions, LimitOptions, CompletionOptions, ProbeOptions, Finished>;

Command parse_arguments(int argc, const char* const* argv);

// A script for "bash", "zsh" or "fish" that completes what parse_arguments() accepts.
std::string completion_script(const std::string& shell);

}  // namespace vramd::ctl
