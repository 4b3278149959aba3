// What kind of process, and what kind of call, this is: whether vramd may act in it at all.
#pragma once

#include <pthread.h>

namespace vramd::shim::hook {

// VRAMD_DISABLE is set (to anything but "" and "0"), or CUDA_INJECTION64_PATH is: a profiler then hooks the
// same functions. Every hook is a tail jump. Read from the environment once, at the first call.
bool disabled();

// Call after a successful cuInit: from now on a fork of this process is a child that inherits our state but
// must not use it. Any thread, any number of times. A child that was forked earlier is a process of its own.
void mark_process();

// Whether we are the child of a marked process, however it was made (fork, clone, a raw system call). One
// load.
bool in_forked_child();

// Counts how deep this thread is inside calls that vramd itself makes. What the driver looks up or calls meanwhile is not the
// program's doing and is not hooked. A cancellation of the thread waits until the outermost is over: the driver may have
// cancellation points (open, read), and a thread that ended in one of them would take the heap's locks with it.
class OwnCall {
 public:
  OwnCall() {
    if (depth_++ == 0) (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
  }
  ~OwnCall() {
    if (--depth_ == 0) (void)pthread_setcancelstate(cancel_state_, nullptr);
  }
  OwnCall(const OwnCall&) = delete;
  OwnCall& operator=(const OwnCall&) = delete;

  static bool active() { return depth_ != 0; }

 private:
  static thread_local constinit int depth_;
  int cancel_state_ = PTHREAD_CANCEL_ENABLE;  // what it is where libpthread isn't loaded, and nothing is stored
};

// A hooked function goes straight to the driver: our own call, or a forked child.
inline bool passes_through() { return OwnCall::active() || in_forked_child(); }

}  // namespace vramd::shim::hook
