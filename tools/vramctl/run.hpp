// `vramctl run`: replaces this process by the command, with vramd preloaded.
#pragma once

#include "tools/vramctl/arguments.hpp"

namespace vramd::ctl {

// Returns only when nothing was started.
int run(const RunOptions& options);

}  // namespace vramd::ctl
