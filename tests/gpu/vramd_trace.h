/* What libvramd_trace.so tells the program it is preloaded into: find these functions with dlsym(RTLD_DEFAULT, ...). */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vramd_trace_call {
  const char* entry; /* the driver's exported name: cuMemAlloc_v2 */
  const char* asked; /* how the program came by it: the name it asked cuGetProcAddress for, or `entry` if by dlsym or linking */
  int32_t version;   /* the version it asked for; -1: by dlsym or linking */
  uint32_t flags;    /* of that question */
  int32_t result;    /* the driver's answer; -1: still running */
  int32_t this_thread; /* 0: made by another thread than the caller of vramd_trace_take */
};

struct vramd_trace_query {
  char name[64];
  int32_t version;
  uint32_t flags;
  int32_t result;
};

/* Moves the driver calls since the last take into `calls`, oldest first. Returns how many there were; those beyond `room` are
 * lost. One thread at a time. */
__attribute__((visibility("default"))) uint64_t vramd_trace_take(struct vramd_trace_call* calls, uint64_t room);

/* All questions to cuGetProcAddress so far, oldest first. Returns how many there were. */
__attribute__((visibility("default"))) uint64_t vramd_trace_queries(struct vramd_trace_query* queries, uint64_t room);

#ifdef __cplusplus
}
#endif
