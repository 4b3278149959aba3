// Finds the host implementations ("twins") of kernels. Thread-safe.
#pragma once

#include <string>

#include "tools/simgpu/twins/launch.h"

namespace simgpu {

// The twin of a mangled kernel name, or nullptr. Looks into "<executable>.twins.so" and the objects of SIM_KERNELS, loaded
// at the first call.
SimTwin find_twin(const std::string& mangled);

}  // namespace simgpu
