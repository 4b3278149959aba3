// What an admin orders of the daemon: `trim`, `limit`, `policy reload`.
#pragma once

#include "tools/vramctl/arguments.hpp"

namespace vramd::ctl {

int trim(const TrimOptions& options);
int limit(const LimitOptions& options);
int reload(const ReloadOptions& options);

}  // namespace vramd::ctl
