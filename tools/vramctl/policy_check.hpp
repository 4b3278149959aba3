// `vramctl policy check`: everything that is wrong with policy files.
#pragma once

#include "tools/vramctl/arguments.hpp"

namespace vramd::ctl {

int policy_check(const PolicyCheckOptions& options);

}  // namespace vramd::ctl
