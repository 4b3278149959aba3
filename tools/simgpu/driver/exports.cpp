// The driver's exported functions, generated from the headers.
#include <cuda.h>
#include <cxxabi.h>

#include "impl.hpp"
#include "tools/simgpu/driver/calls.hpp"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))
// No exception leaves an exported function; the only ones to expect come from memory that the host doesn't
// have.
#define SIMGPU_CALL(index, traits, expression)                                                          \
  CUresult result_ = CUDA_SUCCESS;                                                                      \
  if (!simgpu::enter_call(index, simgpu::traits, __builtin_return_address(0), result_)) return result_; \
  try {                                                                                                 \
    result_ = simgpu::expression;                                                                       \
  } catch (const abi::__forced_unwind&) {                                                               \
    throw;                                                                                              \
  } catch (...) {                                                                                       \
    result_ = CUDA_ERROR_OPERATING_SYSTEM;                                                              \
  }                                                                                                     \
  return simgpu::leave_call(index, result_);
#define SIMGPU_MISSING(index) return simgpu::missing_call(index);

#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "exports.inc"
