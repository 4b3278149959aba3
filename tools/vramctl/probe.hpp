// Looking at a foreign library in a child process: a driver may crash, hang or call exit().
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/vramctl/arguments.hpp"

namespace vramd::ctl {

struct ProbeReport {
  bool finished = false;  // false: it crashed, hung or could not be started
  std::string output;     // JSON text, when it finished
  std::string trouble;    // in words, when it did not
};

// Starts this program again as `__probe what library` and waits up to ten seconds. `preload`: a library that is preloaded into
// it; none otherwise, whatever this process has.
ProbeReport probe_in_child(const std::string& what, const std::string& library,
                           const std::vector<std::pair<std::string, std::string>>& variables, const std::string& preload = "");

// The child's side: prints one JSON object.
int probe(const ProbeOptions& options);

}  // namespace vramd::ctl
