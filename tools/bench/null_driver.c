/* A driver that does nothing, for vramd-bench gate: what remains of a launch is the way to it. */
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags) { return (int)flags; }

EXPORT int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

EXPORT int cuDeviceGetCount(int* count) {
  *count = 0;
  return 0;
}

EXPORT int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned shared, void* stream, void** parameters, void** extra) {
  (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z, (void)shared;
  (void)stream, (void)parameters, (void)extra;
  return function != NULL;
}

/* The same function without anybody in between: this library binds its own names itself. */
EXPORT void* null_driver_launch(void) { return (void*)&cuLaunchKernel; }
