// Failures that a test asks for: SIM_FAIL and simgpu_fail().
#pragma once

#include <cuda.h>

#include <atomic>
#include <string>

namespace simgpu {

// Whether there are rules at all: lets every call skip the rest.
extern std::atomic<bool> failures_wanted;

// SIM_FAIL, at the first call.
void read_failures();
// Replaces the rules. False, with a line in the log for each mistake and nothing changed, when one is not understood.
bool set_failures(const std::string& rules);

// Counts a call of the function under each rule that covers it. True: it must answer `result`.
bool injected_failure(unsigned function, CUresult& result);

}  // namespace simgpu
