// For test cases that commit a crime: the simulated driver must have seen it, and nothing else.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "tests/support/catch.hpp"
#include "tools/simgpu/simgpu.h"

inline void expect_misuse(std::initializer_list<const char*> kinds) {
  std::uint64_t expected = 0;
  for (const char* const kind : kinds) {
    INFO("expected misuse: " << std::string(kind));
    CHECK(simgpu_misuse_count(kind) != 0);
    expected += simgpu_misuse_count(kind);
  }
  CHECK(simgpu_misuse_count(nullptr) == expected);
  if (simgpu_misuse_count(nullptr) != expected) simgpu_report_misuse();
  simgpu_forget_misuse();
}
