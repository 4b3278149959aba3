// The gate: no submission while it is closed and drained, nobody lost, nobody asleep for ever.
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <chrono>
#include <thread>
#include <vector>

#include "shim/gate/gate.hpp"
#include "tests/support/catch.hpp"

using namespace vramd;
using namespace vramd::shim;
using gate::Closing;
using gate::Kind;
using gate::Pass;

namespace {

#ifdef __SANITIZE_THREAD__
constexpr int kThreads = 8, kClosings = 10;  // the sanitizer needs milliseconds for each thread that comes and goes
#else
constexpr int kThreads = 64, kClosings = 40;
#endif

Nanos in(std::int64_t millis) {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return Nanos{static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec} + milliseconds(millis);
}

// What a submission does to the GPU: while the gate is closed and drained it must not happen.
struct Gpu {
  std::atomic<bool> quiet{false};
  std::atomic<std::uint64_t> disturbed{0};

  void submit() {
    const Pass pass(Kind::kernel);
    if (quiet.load()) ++disturbed;
  }
  // As submit(), without the gate: the planted fault that the test must see.
  void submit_past_the_gate() {
    if (quiet.load()) ++disturbed;
  }
};

// Threads that submit in loops, each for a while, and are replaced by others when they end.
class Crowd {
 public:
  Crowd(int count, void (*body)(Gpu&), Gpu& gpu) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([&, body] {
        while (!stop_) {
          std::thread([&] {
            for (int n = 0; n < 2000 && !stop_; ++n) {
              body(gpu);
              ++submissions;
            }
          }).join();
        }
      });
    }
  }
  ~Crowd() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  std::atomic<std::uint64_t> submissions{0};

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

std::uint64_t disturbances(int threads, int closings, void (*body)(Gpu&)) {
  Gpu gpu;
  Crowd crowd(threads, body, gpu);
  for (int i = 0; i < closings; ++i) {
    const std::uint64_t before = crowd.submissions;
    {
      Closing closing;
      REQUIRE(closing.drain(in(5000)));
      gpu.quiet = true;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      gpu.quiet = false;
    }
    for (int round = 0; crowd.submissions == before && round < 5000; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // somebody gets on
    }
    REQUIRE(crowd.submissions > before);
  }
  return gpu.disturbed;
}

}  // namespace

TEST_CASE("gate: closed and drained, nobody submits; opened, all go on") {
  const bool refused = GENERATE(false, true);
  gate::prepare();
  if (refused) gate::detail::no_membarrier = true;
  CAPTURE(refused);
  CHECK(disturbances(kThreads, kClosings, [](Gpu& gpu) { gpu.submit(); }) == 0);
  CHECK(disturbances(4, kClosings, [](Gpu& gpu) { gpu.submit_past_the_gate(); }) > 0);  // the test can see it
  gate::prepare();
}

TEST_CASE("gate: a submission under way holds up the drain until its end, or the deadline") {
  gate::prepare();
  std::atomic<int> step{0};
  std::thread submitter([&] {
    const Pass pass(Kind::copy);
    step = 1;
    while (step != 2) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  {
    Closing closing;
    CHECK_FALSE(closing.drain(in(20)));
    step = 2;
    CHECK(closing.drain(in(5000)));
  }
  submitter.join();
}

TEST_CASE("gate: who closes it may be inside a submission itself") {
  gate::prepare();
  const Pass pass(Kind::other);
  Closing closing;
  CHECK(closing.drain(in(1000)));
}

TEST_CASE("gate: a thread asleep at the gate is woken when it opens") {
  gate::prepare();
  std::atomic<bool> through{false};
  std::thread sleeper;
  {
    Closing closing;
    sleeper = std::thread([&] {
      const Pass pass(Kind::graph);
      through = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    CHECK_FALSE(through);
    CHECK(closing.drain(in(1000)));  // a sleeper is not inside
  }
  sleeper.join();
  CHECK(through);
}

TEST_CASE("gate: nested submissions pass, also those of a signal handler") {
  gate::prepare();
  static std::atomic<int> handled{0};
  struct sigaction action {};
  action.sa_handler = [](int) {
    const Pass pass(Kind::host);
    ++handled;
  };
  ::sigaction(SIGUSR1, &action, nullptr);
  const std::uint64_t before = gate::passed(Kind::kernel);
  {
    const Pass outer(Kind::kernel);
    const Pass inner(Kind::kernel);
    ::raise(SIGUSR1);
  }
  CHECK(handled == 1);
  CHECK(gate::passed(Kind::kernel) == before + 1);  // a nested one is part of the outer one
  Closing closing;
  CHECK(closing.drain(in(1000)));
}

TEST_CASE("gate: a thread that ended inside a submission doesn't hold up a drain") {
  gate::prepare();
  pthread_t thread{};
  static std::atomic<bool> inside{false};
  REQUIRE(::pthread_create(
              &thread, nullptr,
              [](void*) -> void* {
                alignas(Pass) static unsigned char memory[sizeof(Pass)];
                new (memory) Pass(Kind::kernel);  // its destructor never runs
                inside = true;
                return nullptr;
              },
              nullptr) == 0);
  REQUIRE(::pthread_join(thread, nullptr) == 0);
  CHECK(inside);
  Closing closing;
  CHECK(closing.drain(in(2000)));
}

TEST_CASE("gate: submissions are counted by kind over all threads, also those that are gone") {
  gate::prepare();
  const std::uint64_t kernels = gate::passed(Kind::kernel), fills = gate::passed(Kind::fill);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back([] {
        for (int n = 0; n < 5; ++n) const Pass pass(Kind::kernel);
        const Pass pass(Kind::fill);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(gate::passed(Kind::kernel) == kernels + 2000);
  CHECK(gate::passed(Kind::fill) == fills + 400);
}

TEST_CASE("gate: one closes at a time") {
  gate::prepare();
  std::atomic<int> inside{0}, most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20; ++n) {
        Closing closing;
        const int now = ++inside;
        int seen = most;
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(most == 1);
}
