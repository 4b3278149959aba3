#include "tests/gpu/gpu_kernels.cuh"
