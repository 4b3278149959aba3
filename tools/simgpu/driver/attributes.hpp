// Device attributes by profile.
#pragma once

#include <cuda.h>

namespace simgpu {

// 0 for attributes that no simulated card has.
int device_attribute(CUdevice_attribute attribute, int device);

}  // namespace simgpu
