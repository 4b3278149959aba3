// Barriers of a block. The twin's loop runs the threads of a block one after another on the stack of the OS thread. A thread
// that reaches a barrier is parked where it stands, and the loop goes on with the next thread on a stack of its own (a fiber).
// Once all threads of the block are parked or have ended, the parked ones are resumed in the order of their indices, up to the
// next barrier. A launch without barriers never leaves its loop.
//
// State belongs to the OS thread: launches on several threads know nothing of each other, and a thread of a block never changes
// its OS thread.
//
// A launch may be left by longjmp to the stack that it was started on: the next one on that OS thread takes back the fibers
// that were parked. Who jumps out of a signal handler needs an alternate signal stack; under the thread sanitizer he switches
// to the fiber that called the twin first (__tsan_switch_to_fiber); and glibc's fortified longjmp may refuse to change stacks.
#pragma once

#include "tools/simgpu/twins/built_ins.hpp"
#include "tools/simgpu/twins/launch.h"

namespace simgpu::twins {

struct Position {
  uint3 block, thread;
};

enum class Where { launch, fiber };

// How the barrier gets back into the loop of a launch.
struct Loop {
  const SimLaunch* launch;
  void (*enter)(const SimLaunch&, Where, const Position&);
};

struct Votes {
  int count;  // threads at the barrier whose predicate holds
  bool all;   // of those at the barrier
};

#define SIMGPU_ENGINE __attribute__((visibility("default")))

// The stack holds one thread that was parked: the loop on it must not go on, others have run the threads that follow. Read
// after every thread; but what a kernel stores, unless it is a bool or a char, cannot be this, so that the compiler mostly
// takes the question out of the loop.
extern constinit thread_local bool resumed SIMGPU_ENGINE __attribute__((tls_model("initial-exec")));

// Before the first thread of a launch.
SIMGPU_ENGINE void begin_launch(const Loop& loop);

// Called by a thread of a block: returns when all its threads have arrived or ended. Every call is the same barrier, wherever
// it stands in the source.
SIMGPU_ENGINE Votes wait_for_block(bool predicate);

// Called by the launch's own stack when its thread has been resumed and ended: runs the block to its end.
SIMGPU_ENGINE void finish_block();

#undef SIMGPU_ENGINE

}  // namespace simgpu::twins
