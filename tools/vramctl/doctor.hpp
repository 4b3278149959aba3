// `vramctl doctor`: every check, with what to do about each finding.
#pragma once

#include "tools/vramctl/arguments.hpp"

namespace vramd::ctl {

int doctor(const DoctorOptions& options);

}  // namespace vramd::ctl
