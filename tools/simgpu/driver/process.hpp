// The driver's state in this process: set up by cuInit, never torn down.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

#include "tools/simgpu/driver/blocks.hpp"
#include "tools/simgpu/driver/chunk_table.hpp"
#include "tools/simgpu/driver/control.hpp"

namespace simgpu {

// Joins the machine and applies CUDA_VISIBLE_DEVICES. Idempotent and thread-safe.
CUresult initialise_process();

Control& control();
ChunkTable& chunks();  // guarded by memory_mutex()
Blocks& blocks();      // guarded by memory_mutex()

// Devices are named by ordinal, as CUDA_VISIBLE_DEVICES shows them; their memory is named by place.
int visible_device_count();
bool valid_device(int ordinal);
std::uint32_t place_of(int ordinal);
int ordinal_of(std::uint32_t place);  // -1: not visible, or host memory

// Stable for a machine name and a physical device, whatever is visible.
CUuuid device_uuid(std::uint32_t place);

// Sleeps for a latency of SIM_LATENCY_US.
void sleep_micros(double micros);

}  // namespace simgpu
