/* A launch as the simulated driver hands it to a kernel's twin: its implementation for the host.
 * A twin is a function  extern "C" void simk_<mangled kernel name>(const SimLaunch*)  in a shared object that the driver
 * finds as "<executable>.twins.so" or in the colon-separated list SIM_KERNELS. */
#ifndef SIMGPU_TWINS_LAUNCH_H
#define SIMGPU_TWINS_LAUNCH_H

#ifdef __cplusplus
extern "C" {
#endif

struct SimDim3 {
  unsigned x, y, z;
};

struct SimLaunch {
  struct SimDim3 grid, block;
  unsigned dynamic_shared;  /* bytes */
  unsigned parameter_count;
  void** parameters; /* one pointer per kernel parameter, to a copy made at the launch */
};

typedef void (*SimTwin)(const struct SimLaunch*);

#ifdef __cplusplus
}
#endif
#endif
