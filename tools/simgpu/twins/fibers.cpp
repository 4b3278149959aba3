#include "tools/simgpu/twins/fibers.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "tools/simgpu/twins/stack_switch.hpp"

constinit thread_local uint3 threadIdx{0, 0, 0};
constinit thread_local uint3 blockIdx{0, 0, 0};
constinit thread_local dim3 blockDim{1, 1, 1};
constinit thread_local dim3 gridDim{1, 1, 1};

namespace simgpu::twins {

constinit thread_local bool resumed = false;

namespace {

constexpr unsigned kMostThreads = 1024;  // of a block, on all cards

struct Fiber {
  Stack stack;
  uint3 thread{};  // while it is parked
  bool fresh = true;
};

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "simgpu: __syncthreads: %s\n", why);
  std::abort();
}

constinit thread_local Loop current_loop{};

class Engine {
 public:
  // Threads that were parked when their launch was left by longjmp are no more.
  void begin_launch() {
    if (in_block_) {
      forget_switch(running_->stack, own_.stack);
      idle_count_ = 0;
      for (unsigned i = 0; i < fiber_count_; ++i) {
        fibers_[i]->fresh = true;
        idle_[idle_count_++] = fibers_[i].get();
      }
      in_block_ = false;
    }
  }

  Votes wait(bool predicate) {
    if (!in_block_) begin_block();
    if (waiting_count_ == kMostThreads) give_up("more than 1024 threads in a block");
    Fiber& self = *running_;
    self.thread = threadIdx;
    waiting_[waiting_count_++] = &self;
    if (predicate) ++counted_;
    switch_to(next());
    threadIdx = self.thread;
    resumed = true;
    return votes_;
  }

  // Returns at once when the launch's own thread was the last one.
  void finish_block() {
    switch_to(next());
    in_block_ = false;
  }

 private:
  void begin_block() {
    own_.stack.adopt_current();
    running_ = &own_;
    in_block_ = starting_ = true;
    waiting_count_ = ready_count_ = ready_next_ = 0;
    counted_ = 0;
  }

  // Who runs when the running thread is parked or has ended.
  Fiber& next() {
    if (ready_next_ < ready_count_) return *ready_[ready_next_++];
    if (starting_ && has_next_thread()) return take_idle();
    starting_ = false;
    if (waiting_count_ == 0) return own_;  // whose thread was the first to be parked: it has ended too
    std::swap(waiting_, ready_);
    ready_count_ = std::exchange(waiting_count_, 0);
    ready_next_ = 0;
    votes_ = {static_cast<int>(counted_), counted_ == ready_count_};
    counted_ = 0;
    return *ready_[ready_next_++];
  }

  bool has_next_thread() {
    start_ = {blockIdx, threadIdx};
    uint3& t = start_.thread;
    if (++t.x < blockDim.x) return true;
    t.x = 0;
    if (++t.y < blockDim.y) return true;
    t.y = 0;
    return ++t.z < blockDim.z;
  }

  Fiber& take_idle() {
    if (idle_count_ == 0) {
      if (fiber_count_ == kMostThreads) give_up("more than 1024 threads in a block");
      auto made = std::make_unique<Fiber>();
      if (!made->stack.map()) give_up("no memory for one more thread's stack (vm.max_map_count?)");
      idle_[idle_count_++] = made.get();
      fibers_[fiber_count_++] = std::move(made);
    }
    Fiber& fiber = *idle_[--idle_count_];
    if (std::exchange(fiber.fresh, false)) fiber.stack.start_at(&Engine::fiber_main);
    return fiber;
  }

  void switch_to(Fiber& to) {
    Fiber& from = *running_;
    if (&to == &from) return;
    running_ = &to;
    switch_stack(from.stack, to.stack);
  }

  // Each round goes on with the loop from start_. It comes back with the loop at its end, or with a thread that was parked and
  // has ended: in both cases no thread is left to be started.
  static void fiber_main();
  void carry() {
    for (;;) {
      current_loop.enter(*current_loop.launch, Where::fiber, start_);
      starting_ = false;
      idle_[idle_count_++] = running_;
      switch_to(next());
    }
  }

  Fiber own_;  // the launch's own stack
  Fiber* running_ = &own_;
  bool in_block_ = false;  // from the first barrier of a block to its end
  bool starting_ = false;  // some threads of the block have not begun
  Position start_{};       // where a fiber takes the loop over
  unsigned counted_ = 0;   // predicates of those that wait
  Votes votes_{};          // of the barrier that was passed last

  std::array<Fiber*, kMostThreads> waiting_{}, ready_{}, idle_{};
  unsigned waiting_count_ = 0, ready_count_ = 0, ready_next_ = 0, idle_count_ = 0;
  std::array<std::unique_ptr<Fiber>, kMostThreads> fibers_;
  unsigned fiber_count_ = 0;
};

thread_local std::unique_ptr<Engine> engine;  // made at the first barrier of an OS thread

void Engine::fiber_main() {
  arrived_on_fresh_stack();
  engine->carry();
}

}  // namespace

void begin_launch(const Loop& loop) {
  current_loop = loop;
  if (engine) engine->begin_launch();
}

Votes wait_for_block(bool predicate) {
  if (current_loop.launch == nullptr) give_up("called outside a launch");
  if (!engine) engine = std::make_unique<Engine>();
  return engine->wait(predicate);
}

void finish_block() { engine->finish_block(); }

}  // namespace simgpu::twins
