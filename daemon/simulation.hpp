// `--sim PROFILE[xN]`: chooses which libcuda is opened and what stands in its environment. No simulator code
// in here.
#pragma once

#include <map>
#include <string>

#include "daemon/trouble.hpp"

namespace vramd {

struct Simulation {
  std::string profile;
  int devices = 1;
  std::string library;                             // path of the simulated libcuda
  std::map<std::string, std::string> environment;  // what jobs need to see the same simulated machine
};

// `directory` empty: the folder simgpu beside the folder of the executable.
Try<Simulation> choose_simulation(const std::string& argument, const std::string& directory);

// Puts the environment into this process, before libcuda is opened. LD_LIBRARY_PATH is for jobs only.
void enter(const Simulation& simulation);

}  // namespace vramd
