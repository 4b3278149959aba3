// Names and texts of the runtime's errors.
#include <cstddef>
#include <iterator>

#include "tools/simgpu/runtime/calls.hpp"

namespace simgpu::runtime {
namespace {

const char* name_of(int code) {
  switch (code) {
#include "error_names.inc"  // generated from the toolkit's header
    default: return nullptr;
  }
}

// Errors that the driver does not know, and those whose text programs and people look for. The others are
// asked of the driver.
struct Text {
  cudaError_t code;
  const char* text;
};
constexpr Text kTexts[] = {
    {cudaSuccess, "no error"},
    {cudaErrorInvalidValue, "invalid argument"},
    {cudaErrorMemoryAllocation, "out of memory"},
    {cudaErrorInitializationError, "initialization error"},
    {cudaErrorInvalidConfiguration, "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "invalid pitch argument"},
    {cudaErrorInvalidSymbol, "invalid device symbol"},
    {cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorCallRequiresNewerDriver, "API call is not supported in the installed CUDA driver"},
    {cudaErrorMissingConfiguration, "a kernel was called without a launch configuration"},
    {cudaErrorInvalidDeviceFunction, "invalid device function"},
    {cudaErrorNoDevice, "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "invalid device ordinal"},
    {cudaErrorNotReady, "device not ready"},
    {cudaErrorIllegalAddress, "an illegal memory access was encountered"},
    {cudaErrorNotSupported, "operation not supported"},
    {cudaErrorUnknown, "unknown error"},
};

constexpr const char* kUnrecognized = "unrecognized error code";

}  // namespace

cudaError_t translate(CUresult result) {
  return name_of(result) != nullptr ? static_cast<cudaError_t>(result) : cudaErrorUnknown;
}

SIMGPU_API const char* cudaGetErrorName(cudaError_t error) {
  const char* name = name_of(error);
  return name != nullptr ? name : kUnrecognized;
}

SIMGPU_API const char* cudaGetErrorString(cudaError_t error) {
  for (const Text& entry : kTexts)
    if (entry.code == error) return entry.text;
  const char* text = nullptr;
  load_driver();
  if (driver_call<row::cudaGetErrorString>(static_cast<CUresult>(error), &text) == CUDA_SUCCESS && text != nullptr) return text;
  return cudaGetErrorName(error);
}

}  // namespace simgpu::runtime
