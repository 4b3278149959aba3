#include "tests/conformance/gate.hpp"

#include <pthread.h>
#include <time.h>

#include "tests/conformance/case.hpp"

// A libc since 2.34 would bind its own newest version. These are in libpthread where that is a file of its own, and the driver
// brings it along.
__asm__(".symver pthread_create, pthread_create@GLIBC_2.2.5");
__asm__(".symver pthread_join, pthread_join@GLIBC_2.2.5");

namespace vramd::conformance {
namespace {

constexpr int kMaxGates = 8;
Gate gates[kMaxGates];
std::atomic<int> gate_count{0};

void* watch(void* argument) {
  Gate& gate = *static_cast<Gate*>(argument);
  for (int waited = 0; waited < kGateMillis && !gate.is_open(); waited += 5) sleep_millis(5);
  gate.open();
  return nullptr;
}

}  // namespace

void Gate::open() {
  if (!word) return;
  opened.store(true);  // before the word: who sees the stream go on must see an open gate
  __atomic_store_n(word, 1u, __ATOMIC_SEQ_CST);
}

Gate& make_gate() {
  need_that(gate_count.load() < kMaxGates, "too many gates");
  Gate& gate = gates[gate_count.load()];
  void* word = nullptr;
  NEED(cuMemHostAlloc(&word, sizeof(std::uint32_t), CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
  gate.word = static_cast<std::uint32_t*>(word);
  *gate.word = 0;
  gate_count.fetch_add(1);
  return gate;
}

void close_gate(Gate& gate, CUstream stream) {
  CUdeviceptr address = 0;
  NEED(cuMemHostGetDevicePointer(&address, gate.word, 0));
  const CUresult result = cuStreamWaitValue32(stream, address, 1, CU_STREAM_WAIT_VALUE_GEQ);
  if (result == CUDA_ERROR_NOT_SUPPORTED) not_available("cuStreamWaitValue32 is not supported");
  need(result, "cuStreamWaitValue32");
  start_thread(watch, &gate);
}

void open_all_gates() {
  for (int i = 0; i < gate_count.load(); ++i) gates[i].open();
}

void sleep_millis(int millis) {
  const timespec pause{millis / 1000, millis % 1000 * 1'000'000L};
  ::nanosleep(&pause, nullptr);
}

std::int64_t now_nanos() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

Thread start_thread(void* (*function)(void*), void* argument) {
  pthread_t id{};
  need_that(::pthread_create(&id, nullptr, function, argument) == 0, "pthread_create");
  return Thread{id};
}

void Thread::join() { need_that(::pthread_join(id, nullptr) == 0, "pthread_join"); }

}  // namespace vramd::conformance
