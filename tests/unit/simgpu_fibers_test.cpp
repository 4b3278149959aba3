// Twins whose threads wait for each other: barriers, shared memory, launches that are left in the middle.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <numeric>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.hpp"
#include "tools/simgpu/twins/host_kernels.hpp"
#include "tools/simgpu/twins/stack_switch.hpp"

SIM_DYNAMIC_SHARED(int, mirror)

#include "tests/unit/simgpu_fibers_kernels.cuh"

namespace {

// A fault handler runs where the kernel stood, and jumps from there to the launch's own stack. The thread sanitizer must be
// told.
struct Escape {
  std::jmp_buf buffer;
#ifdef SIMGPU_TSAN
  void* fiber = __tsan_get_current_fiber();
#endif
};

}  // namespace

// Thread `who` of block 1 leaves the launch between two barriers.
__global__ void leave(unsigned* out, unsigned who, Escape* escape) {
  out[threadIdx.x] = 1;
  __syncthreads();
  if (blockIdx.x == 1 && threadIdx.x == who) {
#ifdef SIMGPU_TSAN
    __tsan_switch_to_fiber(escape->fiber, 0);
#endif
    std::longjmp(escape->buffer, 1);
  }
  __syncthreads();
  out[threadIdx.x] = 2;
}

// Thread 1 needs half a MiB of stack, which the worker's own has and a parked thread's has not.
__device__ int descend(volatile int* above, int depth) {
  volatile int frame[256];
  frame[0] = above[0] + 1;
  return depth == 0 ? frame[0] : descend(frame, depth - 1) + frame[0];
}
__global__ void deep(int* out) {
  __syncthreads();
  if (threadIdx.x == 1) *out = descend(out, 512);
}

SIM_TWIN(deep, deep)
SIM_TWIN(tree_sum, tree_sum)
SIM_TWIN(pass_on, pass_on)
SIM_TWIN(who_am_i, who_am_i)
SIM_TWIN(backwards, backwards<int>)
SIM_TWIN(count_all, count_all)
SIM_TWIN(votes, votes)
SIM_TWIN(uneven, uneven)
SIM_TWIN(registers, registers)
SIM_TWIN(leave, leave)

namespace {

constexpr unsigned kBlocks = 3;

template <class... Parameters>
void launch(SimTwin twin, SimDim3 grid, SimDim3 block, unsigned shared, Parameters... parameters) {
  void* pointers[] = {&parameters...};
  const SimLaunch call{grid, block, shared, sizeof...(parameters), pointers};
  twin(&call);
}

bool sums_are_right(unsigned threads) {
  std::vector<int> in(kBlocks * threads), out(kBlocks, -1);
  std::iota(in.begin(), in.end(), 1);
  launch(simk_tree_sum, {kBlocks, 1, 1}, {threads, 1, 1}, 0, static_cast<const int*>(in.data()), out.data());
  for (unsigned b = 0; b < kBlocks; ++b)
    if (out[b] != std::accumulate(in.begin() + b * threads, in.begin() + (b + 1) * threads, 0)) return false;
  return true;
}

bool passes_on(SimDim3 block, unsigned stay, unsigned rounds) {
  const unsigned threads = block.x * block.y * block.z;
  std::vector<unsigned> out(threads, 4711);
  launch(simk_pass_on, {1, 1, 1}, block, 0, out.data(), stay, rounds);
  for (unsigned i = 0; i < threads; ++i)
    if (out[i] != (i < stay ? (i + rounds) % stay : 4711)) return false;
  return true;
}

// Leaves a launch by longjmp. True when it got there.
bool left_a_launch(unsigned threads, unsigned who) {
  std::vector<unsigned> out(threads, 0);
  Escape escape;
  if (setjmp(escape.buffer) != 0) return true;
  launch(simk_leave, {3, 1, 1}, {threads, 1, 1}, 0, out.data(), who, &escape);
  return false;
}

// How a child process ends.
template <class Body>
int status_of(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    for (const int end : {SIGABRT, SIGSEGV, SIGBUS}) std::signal(end, SIG_DFL);  // Catch would report a failure
    body();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("Fibers: a block's sum, with several barriers") {
  for (const unsigned threads : {1U, 2U, 32U, 256U, 1024U}) CHECK(sums_are_right(threads));
}

TEST_CASE("Fibers: a barrier in a loop, in one and three dimensions, float values kept") {
  CHECK(passes_on({64, 1, 1}, 64, 10));
  CHECK(passes_on({8, 4, 2}, 64, 3));
  CHECK(passes_on({16, 16, 4}, 1024, 2));
  CHECK(passes_on({1, 1, 64}, 64, 5));
}

TEST_CASE("Fibers: threads that have ended count as arrived") {
  CHECK(passes_on({64, 1, 1}, 5, 7));
  CHECK(passes_on({4, 4, 4}, 1, 3));
  CHECK(passes_on({16, 1, 1}, 0, 3));
}

TEST_CASE("Fibers: a thread keeps its indices") {
  int wrong = 0;
  launch(simk_who_am_i, {2, 3, 2}, {4, 8, 4}, 0, &wrong);
  CHECK(wrong == 0);
}

TEST_CASE("Fibers: dynamic shared memory") {
  for (const unsigned threads : {2U, 100U, 1024U}) {
    std::vector<int> values(2 * threads);
    std::iota(values.begin(), values.end(), 0);
    launch(simk_backwards, {2, 1, 1}, {threads, 1, 1}, threads * 4, values.data());
    for (unsigned i = 0; i < 2 * threads; ++i)
      REQUIRE(values[i] == static_cast<int>(i / threads * threads + threads - 1 - i % threads));
  }
}

TEST_CASE("Fibers: more dynamic shared memory than any card has stops the process") {
  std::vector<int> values(2);
  const int status = status_of([&] {
    launch(simk_backwards, {1, 1, 1}, {2, 1, 1}, simgpu::twins::kMostDynamicShared + 1, values.data());
  });
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
}

TEST_CASE("Fibers: a block of more than 1024 threads that meet stops the process") {
  std::vector<unsigned> out(2000);
  const int status = status_of([&] { launch(simk_count_all, {1, 1, 1}, {2000, 1, 1}, 0, out.data()); });
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
}

TEST_CASE("Fibers: a stack that overflows hits its guard page") {
  int out = 0;
  const int status = status_of([&] { launch(simk_deep, {1, 1, 1}, {2, 1, 1}, 0, &out); });
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
}

TEST_CASE("Fibers: a barrier outside a launch stops the process") {
  int status = 0;
  std::thread([&] { status = status_of([] { __syncthreads(); }); }).join();  // a thread that has launched nothing
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
}

TEST_CASE("Fibers: atomics on shared memory") {
  std::vector<unsigned> out(kBlocks * 512, 0);
  launch(simk_count_all, {kBlocks, 1, 1}, {512, 1, 1}, 0, out.data());
  CHECK(out == std::vector<unsigned>(kBlocks * 512, 512));
}

TEST_CASE("Fibers: votes of those that have not ended") {
  for (const unsigned stay : {1U, 7U, 64U})
    for (const unsigned yes : {0U, 1U, 6U, 64U}) {
      std::vector<int> out(3 * 64, -1);
      launch(simk_votes, {2, 1, 1}, {64, 1, 1}, 0, out.data(), stay, yes);
      const int count = static_cast<int>(std::min(stay, yes));
      for (unsigned i = 0; i < 64; ++i) {
        const std::vector<int> got(out.begin() + 3 * i, out.begin() + 3 * i + 3);
        REQUIRE(got == (i < stay ? std::vector<int>{count, yes >= stay, count != 0} : std::vector<int>(3, -1)));
      }
    }
}

TEST_CASE("Fibers: uneven numbers of barriers come to an end, those with fewer first") {
  std::vector<unsigned> order(100, 0);
  unsigned place = 0;
  launch(simk_uneven, {1, 1, 1}, {100, 1, 1}, 0, order.data(), &place);
  for (unsigned i = 0; i < 100; ++i) REQUIRE(order[i] == 99 - i);
}

TEST_CASE("Fibers: values in registers outlive a barrier") {
  std::vector<double> in(129), out(129, 129.0);
  std::iota(in.begin(), in.end(), 1.0);
  launch(simk_registers, {1, 1, 1}, {128, 1, 1}, 0, static_cast<const double*>(in.data()), out.data());
  for (unsigned i = 0; i < 128; ++i) REQUIRE(out[i] == in[i] + in[i] * 1.5 + in[i] / 3.0 * (in[i] - 7.0) + in[i + 1]);
}

TEST_CASE("Fibers: launches on several OS threads at once") {
  std::vector<int> right(4, 0);
  std::vector<std::thread> workers;
  for (int& good : right)
    workers.emplace_back([&good] {
      for (int round = 0; round < 10; ++round) good += sums_are_right(256) && passes_on({8, 4, 2}, 61, 3);
    });
  for (auto& worker : workers) worker.join();
  CHECK(right == std::vector<int>(4, 10));
}

TEST_CASE("Fibers: a launch that was left by longjmp does not spoil the next") {
  for (const unsigned who : {0U, 1U, 100U, 255U}) {
    REQUIRE(left_a_launch(256, who));
    CHECK(sums_are_right(512));
    REQUIRE(left_a_launch(64, who % 64));
    REQUIRE(left_a_launch(32, who % 32));
    CHECK(passes_on({8, 4, 2}, 61, 3));
  }
}
