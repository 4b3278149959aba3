// A running process as /proc shows it: what decides whether the shim is active in it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vramd::ctl {

struct ProcessFacts {
  int pid = 0, parent = 0;
  std::string name;         // as ps shows it
  bool has_memory = false;  // false: a thread of the kernel, or ended and not waited for
  bool readable = false;    // whether this user may see what follows
  std::string executable;
  std::vector<std::string> files;  // mapped into it, each once; " (deleted)" after one that is gone
  std::vector<std::pair<std::string, std::string>> environment;  // as it was when the program started
  std::string root;                                              // where this process sees that one's files: "/proc/5/root"

  const char* variable(const std::string& wanted) const;  // null when it is not set
};

// Empty when there is no such process. `proc` is "/proc", or a folder that looks like it.
std::optional<ProcessFacts> read_process(const std::string& proc, int pid);

}  // namespace vramd::ctl
