// vramctl calibrate: does every submission of a CUDA runtime pass a function that the shim hooks?
#pragma once

#include "tools/vramctl/arguments.hpp"

namespace vramd::ctl {

// Runs a child with the shim preloaded that makes one of each of the runtime's submitting calls with the gate closed: what
// comes back was not gated. kOk when all were seen, kFinding when one was not or could not be tried.
int calibrate(const CalibrateOptions& options);

// The child's side: prints one JSON object.
int probe_submissions(const std::string& runtime);

}  // namespace vramd::ctl
