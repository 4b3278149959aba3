// Who uses the GPUs' memory: `who` by user, `ps` by process.
#pragma once

#include <string>
#include <vector>

#include "tools/vramctl/arguments.hpp"
#include "tools/vramctl/status_values.hpp"

namespace vramd::ctl {

int who(const WhoOptions& options);
int ps(const PsOptions& options);

// A process that has a GPU's files open.
struct GpuProcess {
  int pid = 0;
  std::string name, user;
};

// Processes below `proc` that have a file open which begins with one of `prefixes`. Those that this user may not look at are
// left out.
std::vector<GpuProcess> processes_with_gpu(const std::string& proc, const std::vector<std::string>& prefixes);

// Lines by user, most memory first.
std::string who_text(const DaemonStatus& status);

}  // namespace vramd::ctl
