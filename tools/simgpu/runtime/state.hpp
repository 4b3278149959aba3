// What the runtime keeps: the last error and the chosen device of each thread, and the primary contexts of
// the process.
#pragma once

#include <cuda.h>
#include <driver_types.h>

namespace simgpu::runtime {

// The driver is loaded and initialised. cudaErrorInsufficientDriver without a driver or with one older
// than 13.0; else what cuInit answered.
cudaError_t driver_ready();

// driver_ready(), and the thread has a current context: the one it has made current itself, else the primary
// context of its device.
cudaError_t context_ready();

// The driver's code as the runtime's: the numbers agree, those that the runtime lacks become
// cudaErrorUnknown.
cudaError_t translate(CUresult result);

// Remembers an error as the thread's last one, and passes it on.
cudaError_t finish(cudaError_t error);
inline cudaError_t finish(CUresult result) { return finish(translate(result)); }

// The device whose context is current, or the one the thread will use at its next call.
cudaError_t current_device(int& device);

// The primary context of a device, retained once for the life of the process.
cudaError_t primary_context(int device, CUcontext& context);

}  // namespace simgpu::runtime
