// What `run` sets in the environment of the command, and why. Pure: no system call, no output.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/vramctl/arguments.hpp"
#include "tools/vramctl/executable.hpp"

namespace vramd::ctl {

struct Variable {
  std::string name, value, why;
};

struct LaunchFacts {
  std::string library;                                             // absolute path of libvramd.so
  std::string socket;                                              // of the daemon that answered; empty = none did
  std::vector<std::pair<std::string, std::string>> simulated_gpu;  // what the daemon says its simulated GPU needs
};

// In the order in which they are printed. Variables that keep their value are not in it.
std::vector<Variable> plan_environment(const RunOptions& options, const LaunchFacts& facts, const Lookup& environment);

// `item` before the entries of a list such as LD_PRELOAD, without a second copy of it.
std::string prepended(const std::string& item, const char* list, const char* separators);

// Of a daemon's answer: only variables that a simulated GPU may need, so that nothing else can be slipped in.
std::vector<std::pair<std::string, std::string>> simulator_variables(
    const std::vector<std::pair<std::string, std::string>>& environment);

}  // namespace vramd::ctl
