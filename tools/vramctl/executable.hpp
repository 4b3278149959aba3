// The program that `run` is to start: where it is, and whether a preloaded library will have an effect in it.
#pragma once

#include <functional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace vramd::ctl {

// How to look up an environment variable; null when it is not set.
using Lookup = std::function<const char*(const char*)>;

struct NotRunnable {
  int exit_code;  // 126 or 127, as a shell has it
  std::string what;
};

// Looks the command up as execvp() does.
tl::expected<std::string, NotRunnable> find_executable(const std::string& command, const Lookup& environment);

// The program that the kernel starts for it: itself, or the interpreter of a script ("#!"); for "env python3", python3.
std::string interpreted_by(const std::string& path);

// Reasons why LD_PRELOAD will not work in it; empty when there is none. Follows the interpreter line of
// scripts.
std::vector<std::string> preload_obstacles(const std::string& path);

}  // namespace vramd::ctl
