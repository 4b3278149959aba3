// A simulated machine of this test process alone, removed at its end. One per program, in the file of the test cases.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tools/simgpu/simgpu.h"

// Weak: a program that opens its driver later has nothing to ask here.
#pragma weak simgpu_misuse_count
#pragma weak simgpu_report_misuse
#pragma weak simgpu_forget_misuse

// For a test case that misuses the driver on purpose, where the driver is inside the test or beside it.
inline void forget_misuse() {
  if (simgpu_forget_misuse) simgpu_forget_misuse();
}

// Chooses the machine before anything reads the environment; programs that are started later see the same one.
struct OwnMachine {
  explicit OwnMachine(const char* profile, const char* devices = "1") {
    const std::string name = "test-" + std::to_string(::getpid());
    folder = "/dev/shm/simgpu-" + name;
    ::setenv("SIM_NAME", name.c_str(), 1);
    ::setenv("SIM_PROFILE", profile, 1);
    ::setenv("SIM_DEVICES", devices, 1);
    ::setenv("SIM_PROTECT", "1", 1);
    ::unsetenv("SIM_DIR");
    ::unsetenv("SIM_CAPACITY_MB");
    ::unsetenv("CUDA_VISIBLE_DEVICES");
  }
  // Misuse that no test case expected (misuse.hpp) fails the program.
  ~OwnMachine() {
    std::filesystem::remove_all(folder);
    if (simgpu_misuse_count && simgpu_misuse_count(nullptr) != 0) {
      std::fprintf(stderr, "misuse of the simulated driver that the test does not expect: see the report below\n");
      simgpu_report_misuse();
      ::_exit(70);
    }
  }
  OwnMachine(const OwnMachine&) = delete;
  OwnMachine& operator=(const OwnMachine&) = delete;

  std::string folder;
};
