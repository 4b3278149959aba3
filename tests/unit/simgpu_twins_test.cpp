// Twins: kernels compiled for the host see the launch's geometry and parameters, and their atomics work
// across workers.
#include "tools/simgpu/twins/host_kernels.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

namespace {

struct Weights {
  double values[5];
  char last;
};

}  // namespace

template <class T, int scale>
__global__ void weigh(T* out, Weights weights, T value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = static_cast<T>(scale) * (value + static_cast<T>(weights.values[4]) + static_cast<T>(weights.last));
}

__global__ void tally(unsigned long long* sum, float* real, int* largest, int* smallest) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(sum, 1ULL);
  atomicAdd(real, 1.0F);
  atomicMax(largest, i);
  atomicMin(smallest, -i);
}

__global__ void where(unsigned* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] += block * 1000 + thread + 1;
}

SIM_TWIN(weigh_int_3, weigh<int, 3>)
SIM_TWIN(tally, tally)
SIM_TWIN(where, where)

namespace {

template <class... Parameters>
void launch(SimTwin twin, SimDim3 grid, SimDim3 block, Parameters... parameters) {
  void* pointers[] = {&parameters...};
  const SimLaunch call{grid, block, 0, sizeof...(parameters), pointers};
  twin(&call);
}

}  // namespace

TEST_CASE("Twins: templates with commas, structs by value") {
  std::vector<int> out(64, 0);
  Weights weights{};
  weights.values[4] = 4;
  weights.last = 1;
  launch(simk_weigh_int_3, {4, 1, 1}, {16, 1, 1}, out.data(), weights, 5);
  CHECK(out == std::vector<int>(64, 30));
}

TEST_CASE("Twins: parameters need not be aligned for their type") {
  int value = 0;
  alignas(8) char buffer[8 + sizeof(Weights)];
  Weights weights{};
  weights.values[4] = 7;
  std::memcpy(buffer + 1, &weights, sizeof(weights));
  int* out = &value;
  int add = 1;
  void* pointers[] = {&out, buffer + 1, &add};
  const SimLaunch call{{1, 1, 1}, {1, 1, 1}, 0, 3, pointers};
  simk_weigh_int_3(&call);
  CHECK(value == 24);
}

TEST_CASE("Twins: every thread of every block runs exactly once") {
  constexpr unsigned kBlocks = 3 * 2 * 4, kThreads = 5 * 3 * 2;
  std::vector<unsigned> out(kBlocks * kThreads, 0);
  launch(simk_where, {3, 2, 4}, {5, 3, 2}, out.data());
  for (unsigned b = 0; b < kBlocks; ++b)
    for (unsigned t = 0; t < kThreads; ++t) REQUIRE(out[b * kThreads + t] == b * 1000 + t + 1);
}

TEST_CASE("Twins: atomics of launches that run at once") {
  unsigned long long sum = 0;
  float real = 0;
  int largest = -1, smallest = 1;
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i)
    workers.emplace_back([&] { launch(simk_tally, {100, 1, 1}, {256, 1, 1}, &sum, &real, &largest, &smallest); });
  for (auto& worker : workers) worker.join();
  CHECK(sum == 4 * 25600);
  CHECK(real == 4 * 25600);
  CHECK(largest == 25599);
  CHECK(smallest == -25599);
}

TEST_CASE("Twins: a launch with another number of parameters stops the process") {
  const pid_t child = fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    launch(simk_where, {1, 1, 1}, {1, 1, 1}, 1, 2);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
}
