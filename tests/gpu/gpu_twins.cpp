// The kernels of tests/gpu for the simulated GPU.
#include "tools/simgpu/twins/host_kernels.hpp"

#include "tests/gpu/gpu_kernels.cuh"
#include "tests/gpu/runtime_calls_kernels.cuh"

SIM_TWIN(gpu_run_nothing, gpu_run_nothing)
SIM_TWIN(gpu_run_read, gpu_run_read)
SIM_TWIN(gpu_run_write, gpu_run_write)
SIM_TWIN(gpu_run_read_scattered, gpu_run_read_scattered)
SIM_TWIN(gpu_run_write_scattered, gpu_run_write_scattered)
SIM_TWIN(_Z3addifPf, add)
