// The driver as a table of functions: filled from a libcuda in production, with fakes in tests.
// A Driver is immutable after load_driver(), so all threads may share it.
#pragma once

#include <cuda.h>

#include "allocator/base/result.hpp"

namespace vramd {

struct Driver {
#define ENTRY(member, name) decltype(&::name) member = nullptr;
#include "allocator/driver/entry_points.def"
#undef ENTRY
};

// Looks every entry point up with `resolve(context, exported name)`. Error: unsupported, `what` names the first missing one.
Result<Driver> load_driver(void* (*resolve)(void* context, const char* name), void* context);

// A CUresult as an Error: OUT_OF_MEMORY is told apart, everything else is ErrorCode::driver with the code in `detail`.
inline Result<void> check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return {};
  return failure(result == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::out_of_memory : ErrorCode::driver, call, result);
}

}  // namespace vramd
