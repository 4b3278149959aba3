// The kernels of crimes.cu for the simulated GPU.
#include "tools/simgpu/twins/host_kernels.hpp"

#include "tests/programs/crimes_kernels.cuh"

SIM_TWIN(_Z4pokePjj, poke)
SIM_TWIN(_Z4peekPKjPj, peek)
SIM_TWIN(_Z13peek_and_pokePjS_, peek_and_poke)
SIM_TWIN(_Z11keep_pokingPjPVKj, keep_poking)
SIM_TWIN(_Z18poke_after_barrierPj, poke_after_barrier)
