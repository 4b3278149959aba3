// The kernels of runtime_checks for the simulated GPU.
#include "tools/simgpu/twins/host_kernels.hpp"

#include "tests/programs/runtime_checks_kernels.cuh"

SIM_DYNAMIC_SHARED(float, partial)

SIM_TWIN(_Z4fillIiEvPT_6RecipeS0_m, fill<int>)
SIM_TWIN(_Z4fillIfEvPT_6RecipeS0_m, fill<float>)
SIM_TWIN(_Z11add_to_eachPiii, add_to_each)
SIM_TWIN(_Z13count_threadsPyj, count_threads)
SIM_TWIN(_Z11coordinatesPj, coordinates)
SIM_TWIN(_Z10block_sumsPKfPfPj, block_sums)
