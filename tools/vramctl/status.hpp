// `vramctl status`: GPUs and sessions, one line each.
#pragma once

#include <string>

#include "tools/vramctl/arguments.hpp"
#include "tools/vramctl/status_values.hpp"

namespace vramd::ctl {

int status(const StatusOptions& options);

// What people read; ends with a newline. Text of sessions is made printable first.
std::string status_text(const DaemonStatus& status);

}  // namespace vramd::ctl
