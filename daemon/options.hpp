// The command line of vramd. Each flag has a twin in the environment.
#pragma once

#include <optional>
#include <string>

namespace vramd {

struct Options {
  std::string socket;
  std::string config;       // empty: the built-in defaults
  std::string web_address;  // empty: the policy's metrics.listen
  std::string sim, sim_directory;
  std::string driver = "libcuda.so.1";
  std::string log_level = "info";
  bool check_config = false;
};

// What is to be done instead of running: --help, --version or an error were printed.
struct Parsing {
  Options options;
  std::optional<int> exit_code;
};

Parsing parse_options(int argc, char** argv);

}  // namespace vramd
