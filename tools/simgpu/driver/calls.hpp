// What every exported function does before and after its implementation: counts, trace, fault injection,
// refusal before cuInit, in a forked child and inside a host function.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

namespace simgpu {

struct FunctionInfo {
  const char* name;
  bool implemented;
};

extern const FunctionInfo kFunctions[];
extern const unsigned kFunctionCount;

enum class ProcessState : int { uninitialised, ready, forked };
extern std::atomic<ProcessState> process_state;

// True on a worker thread while it runs a host function: driver calls are not permitted there.
extern thread_local bool inside_host_function;

// Where the program called the driver: of the call that this thread is in, or of the submission that this worker executes.
extern thread_local const void* call_site;

// True while a _ptsz or _ptds export runs: stream 0 then means the thread's own default stream.
extern thread_local bool per_thread_default_stream;

enum CallTraits : unsigned { kPlain = 0, kBeforeInit = 1, kPerThread = 2 };

// Counts the call. False: answer `result` without running the implementation.
bool enter_call(unsigned function, CallTraits traits, const void* caller, CUresult& result);
CUresult leave_call(unsigned function, CUresult result);
CUresult missing_call(unsigned function);

std::uint64_t call_count(unsigned function);

}  // namespace simgpu
