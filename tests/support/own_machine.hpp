// A simulated machine of this test process alone, removed at its end. One per program, in the file of the test cases.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

// Chooses the machine before anything reads the environment; programs that are started later see the same one.
struct OwnMachine {
  explicit OwnMachine(const char* profile, const char* devices = "1") {
    const std::string name = "test-" + std::to_string(::getpid());
    folder = "/dev/shm/simgpu-" + name;
    ::setenv("SIM_NAME", name.c_str(), 1);
    ::setenv("SIM_PROFILE", profile, 1);
    ::setenv("SIM_DEVICES", devices, 1);
    ::unsetenv("SIM_DIR");
    ::unsetenv("SIM_CAPACITY_MB");
    ::unsetenv("CUDA_VISIBLE_DEVICES");
  }
  ~OwnMachine() { std::filesystem::remove_all(folder); }
  OwnMachine(const OwnMachine&) = delete;
  OwnMachine& operator=(const OwnMachine&) = delete;

  std::string folder;
};
