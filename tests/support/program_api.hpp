// The driver API as a program sees it that runs under the shim. Two implementations, chosen by what is linked:
//   program_api_preloaded.cpp   the program is started with LD_PRELOAD=libvramd.so: names come from dlopen + dlsym
//   program_api_in_process.cpp  shim and simulated driver are linked into the test (sanitizers cannot be preloaded)
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#include <stdexcept>
#include <string>

namespace vramd::testing {

// The function that a program gets for an exported driver name; nullptr when there is none.
void* program_entry(const char* name);

// Whether the shim answers: fails a test that would otherwise pass without it.
bool shim_answers();

}  // namespace vramd::testing

// Calls a driver function as the program: PROGRAM(cuMemAlloc_v2)(&pointer, size).
#define PROGRAM(name)                                                                                         \
  ([] {                                                                                                       \
    static const auto function = reinterpret_cast<decltype(&::name)>(::vramd::testing::program_entry(#name)); \
    if (function == nullptr) throw std::runtime_error("no driver function " #name);                           \
    return function;                                                                                          \
  }())
