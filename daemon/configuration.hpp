// The policy file as the daemon reads it: at start, on SIGHUP, and for --check-config.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/file/policy.hpp"

namespace vramd {

struct Configuration {
  std::optional<policy::Policy> policy;  // empty when the file has errors
  std::vector<std::string> errors, warnings;
};

// An empty path is the built-in policy.
Configuration read_configuration(const std::string& path);

}  // namespace vramd
