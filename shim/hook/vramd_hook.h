/* What libvramd.so tells about its hook, for tests and diagnosis: find these functions with
 * dlsym(RTLD_DEFAULT, ...). */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Since the start of the process. Grows at its end only. */
struct vramd_hook_counts {
  uint64_t lookups;                /* dlsym or dlvsym of a hooked name through a handle */
  uint64_t lookup_replacements;    /* of these, answered with vramd's function */
  uint64_t queries;                /* cuGetProcAddress, both ABIs */
  uint64_t query_replacements;     /* of these, answered with vramd's function */
  uint64_t queries_of_unknown_abi; /* of these, left to the driver: newer than the CUDA headers of this build */
};

/* Copies the first `size` bytes of the counts. Returns the size of the structure in this build. */
__attribute__((visibility("default"))) uint64_t vramd_hook_statistics(struct vramd_hook_counts* counts, uint64_t size);

/* How often vramd's function was handed out under this exported driver name; 0 if the name is not hooked. */
__attribute__((visibility("default"))) uint64_t vramd_hook_handed_out(const char* exported_name);

/* The gate in front of GPU submissions, for calibration (`vramctl calibrate`). While it is closed every thread that submits
 * through a hooked function sleeps. */
__attribute__((visibility("default"))) void vramd_gate_close(void);
__attribute__((visibility("default"))) void vramd_gate_open(void);
/* How many threads sleep at it now. */
__attribute__((visibility("default"))) uint64_t vramd_gate_waiting(void);

#ifdef __cplusplus
}
#endif
