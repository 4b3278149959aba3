// A stream that waits until the host says so, and threads.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

namespace vramd::conformance {

// Closed by close_gate(); a watchdog opens it after kGateMillis, so that a call that waits for it returns.
struct Gate {
  std::uint32_t* word = nullptr;  // pinned; the stream waits for 1
  std::atomic<bool> opened{false};

  void open();
  bool is_open() const { return opened.load(); }
};
constexpr int kGateMillis = 300;

// Allocates: to be called before anything that must not be followed by an allocation.
Gate& make_gate();
// Work put into `stream` from now on waits.
void close_gate(Gate& gate, CUstream stream);
void open_all_gates();

void sleep_millis(int millis);
std::int64_t now_nanos();

// A second thread that runs function(argument). join() waits for it.
struct Thread {
  unsigned long id = 0;
  void join();
};
Thread start_thread(void* (*function)(void*), void* argument);

// Runs f in another thread and waits for it.
template <class F>
void in_thread(F f) {
  start_thread(
      [](void* argument) -> void* {
        (*static_cast<F*>(argument))();
        return nullptr;
      },
      &f)
      .join();
}

}  // namespace vramd::conformance
