// The kernels of saxpy.cu for the simulated GPU.
#include "tools/simgpu/twins/host_kernels.hpp"

#include "tests/programs/saxpy_kernels.cuh"

SIM_TWIN(_Z5saxpyifPKfPf, saxpy)
