// Where libvramd.so is.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "tools/vramctl/executable.hpp"

namespace vramd::ctl {

struct NoLibrary {
  std::string what, remedy;
};

// VRAMD_LIBRARY, else beside this program as built or as installed. The path is absolute and without links.
tl::expected<std::string, NoLibrary> find_library(const Lookup& environment);

// The path of this program, without links.
std::string own_path();

}  // namespace vramd::ctl
