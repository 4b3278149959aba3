// The kernels of replay.cpp for the simulated GPU.
#include "tools/simgpu/twins/host_kernels.hpp"

#include "tests/programs/replay_kernels.cuh"

SIM_TWIN(touch_write, touch_write)
SIM_TWIN(touch_check, touch_check)
