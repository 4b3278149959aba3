// One case in a process of its own: a fault, a hang or a crash harms that case only.
#pragma once

#include <cstdint>

#include "tests/conformance/case.hpp"

namespace vramd::conformance {

struct Verdict {
  Outcome outcome = Outcome::crashed;
  char observed[4096] = "";
  std::int64_t nanos = 0;
};
void run_child(const char* name, int device, int limit_s, Verdict& verdict);

}  // namespace vramd::conformance
