// What host code compiled by nvcc registers at program start: modules, kernels and variables.
#pragma once

#include <cuda.h>
#include <driver_types.h>

#include <cstddef>

namespace simgpu::runtime {

// The kernel behind the host function `function`; its module is loaded into the driver at first use. Need:
// driver_ready().
cudaError_t find_kernel(const void* function, CUkernel& kernel);

// A kernel of a cudaLibrary_t was handed to the program.
void remember_kernel(CUkernel kernel);

// Address and size of the device variable behind the host variable `symbol`, in the current context.
cudaError_t find_symbol(const void* symbol, CUdeviceptr& address, std::size_t& size);

}  // namespace simgpu::runtime
