/* Control over the simulated driver from inside a process that uses it: look the functions up with dlsym in libcuda.so.1. A genuine
 * driver has none of them. All are thread-safe and may be called before cuInit and in host functions. */
#ifndef SIMGPU_H
#define SIMGPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls of one exported driver function by its exact name, for example "cuMemAlloc_v2"; UINT64_MAX: there is no such function. */
uint64_t simgpu_call_count(const char* function);

/* Bytes that copies of this process moved over the cards' links: to_host = 0 towards the devices, 1 towards the host. */
uint64_t simgpu_moved_bytes(int to_host);

/* Failures as in SIM_FAIL ("cuMemCreate:3=2,cuMemMap:p0.01=1"), counted from now on, in place of all earlier ones; "" ends them.
 * 0, or -1 when something in the list is not understood (it is named in the log) and nothing was changed. */
int simgpu_fail(const char* rules);

/* Misuse seen so far, of one kind or (NULL) of all; and as if there had been none. */
uint64_t simgpu_misuse_count(const char* kind);
void simgpu_forget_misuse(void);
/* Prints it on stderr, as at exit. */
void simgpu_report_misuse(void);

/* Microseconds that each kernel lasts at least, from now on; with SIM_TIME=1 only. */
void simgpu_set_launch_us(double microseconds);

/* Writes what streams have done so far, in the form of SIM_TIMELINE, which must be set. 0, or -1 with errno. */
int simgpu_write_timeline(const char* path);

#ifdef __cplusplus
}
#endif
#endif
