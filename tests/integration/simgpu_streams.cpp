// Streams and events of the simulated driver: asynchronous, ordered as CUDA orders them.
#include <atomic>
#include <vector>

#include "tests/support/simgpu_machine.hpp"

static const OwnMachine machine("tiny-1g");

namespace {

void count_up(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

}  // namespace

TEST_CASE("simgpu: a stream is asynchronous and in order") {
  TestContext context;
  StreamGate gate;
  CUstream stream{};
  CUdeviceptr block{};
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU_OK(cuMemAlloc(&block, 4096));
  gate.close_in(stream);
  CU_OK(cuMemsetD8Async(block, 1, 4096, stream));
  CU_OK(cuMemsetD8Async(block, 2, 4096, stream));
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  gate.open();
  CU_OK(cuStreamSynchronize(stream));
  CU_OK(cuStreamQuery(stream));
  unsigned char byte = 0;
  CU_OK(cuMemcpyDtoH(&byte, block + 4095, 1));
  CHECK(byte == 2);
  CU_OK(cuMemFree(block));
  CU_OK(cuStreamDestroy(stream));
}

TEST_CASE("simgpu: one stream waits for another's event, with real times") {
  TestContext context;
  StreamGate gate;
  CUstream producer{}, consumer{};
  CUevent start{}, done{};
  CUdeviceptr block{};
  CU_OK(cuStreamCreate(&producer, CU_STREAM_NON_BLOCKING));
  CU_OK(cuStreamCreate(&consumer, CU_STREAM_NON_BLOCKING));
  CU_OK(cuEventCreate(&start, 0));
  CU_OK(cuEventCreate(&done, 0));
  CU_OK(cuMemAlloc(&block, 4096));
  CU_OK(cuEventQuery(done));  // never recorded
  CU_OK(cuEventRecord(start, producer));
  gate.close_in(producer);
  CU_OK(cuMemsetD8Async(block, 9, 4096, producer));
  CU_OK(cuEventRecord(done, producer));
  CU_OK(cuStreamWaitEvent(consumer, done, 0));
  void* pinned = nullptr;
  CU_OK(cuMemHostAlloc(&pinned, 4096, 0));
  CU_OK(cuMemcpyDtoHAsync(pinned, block, 4096, consumer));
  CHECK(cuEventQuery(done) == CUDA_ERROR_NOT_READY);
  CHECK(cuStreamQuery(consumer) == CUDA_ERROR_NOT_READY);
  float milliseconds = -1;
  CHECK(cuEventElapsedTime(&milliseconds, start, done) == CUDA_ERROR_NOT_READY);
  gate.open();
  CU_OK(cuStreamSynchronize(consumer));
  CHECK(static_cast<unsigned char*>(pinned)[4095] == 9);
  CU_OK(cuEventElapsedTime(&milliseconds, start, done));
  CHECK(milliseconds > 0);
  CU_OK(cuMemFreeHost(pinned));
  CU_OK(cuMemFree(block));
}

TEST_CASE("simgpu: an event keeps the position of its last record") {
  TestContext context;
  StreamGate gate;
  CUstream first{}, second{};
  CUevent event{};
  CU_OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  CU_OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  gate.close_in(first);
  CU_OK(cuEventRecord(event, first));
  CU_OK(cuStreamWaitEvent(second, event, 0));
  CU_OK(cuEventRecord(event, second));  // second waits for the first record all the same
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  gate.open();
  CU_OK(cuEventSynchronize(event));
  CU_OK(cuStreamQuery(first));
}

TEST_CASE("simgpu: the legacy stream waits for blocking streams and holds them up, others pass") {
  TestContext context;
  StreamGate before, within;
  std::atomic<int> blocking_ran{0}, free_ran{0}, legacy_ran{0};
  CUstream blocking{}, independent{};
  CU_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  CU_OK(cuStreamCreate(&independent, CU_STREAM_NON_BLOCKING));

  before.close_in(blocking);
  CU_OK(cuLaunchHostFunc(nullptr, count_up, &legacy_ran));
  CU_OK(cuLaunchHostFunc(independent, count_up, &free_ran));
  CU_OK(cuStreamSynchronize(independent));
  CHECK(free_ran == 1);
  CHECK(legacy_ran == 0);
  CHECK(cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY);
  before.open();
  CU_OK(cuStreamSynchronize(nullptr));
  CHECK(legacy_ran == 1);

  within.close_in(nullptr);
  CU_OK(cuLaunchHostFunc(blocking, count_up, &blocking_ran));
  CU_OK(cuLaunchHostFunc(independent, count_up, &free_ran));
  CU_OK(cuStreamSynchronize(independent));
  CHECK(free_ran == 2);
  CHECK(blocking_ran == 0);
  within.open();
  CU_OK(cuStreamSynchronize(blocking));
  CHECK(blocking_ran == 1);
}

TEST_CASE("simgpu: pageable sources are read at submission, pinned ones when the stream gets there") {
  TestContext context;
  StreamGate gate;
  CUstream stream{};
  CUdeviceptr block{};
  void* pinned = nullptr;
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU_OK(cuMemAlloc(&block, 8));
  CU_OK(cuMemHostAlloc(&pinned, 4, 0));
  unsigned pageable = 1;
  *static_cast<unsigned*>(pinned) = 1;
  gate.close_in(stream);
  CU_OK(cuMemcpyHtoDAsync(block, &pageable, 4, stream));
  CU_OK(cuMemcpyHtoDAsync(block + 4, pinned, 4, stream));
  pageable = 2;
  *static_cast<unsigned*>(pinned) = 2;
  gate.open();
  unsigned read[2] = {};
  CU_OK(cuStreamSynchronize(stream));
  CU_OK(cuMemcpyDtoH(read, block, 8));
  CHECK(read[0] == 1);
  CHECK(read[1] == 2);
  CU_OK(cuMemFreeHost(pinned));
  CU_OK(cuMemFree(block));
}

TEST_CASE("simgpu: cuMemFree waits for the work of its context") {
  TestContext context;
  StreamGate gate;
  CUstream stream{};
  CUdeviceptr block{}, other{};
  std::atomic<int> ran{0};
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU_OK(cuMemAlloc(&block, 4096));
  CU_OK(cuMemAlloc(&other, 4096));
  CU_OK(cuMemsetD8Async(block, 1, 4096, stream));
  CU_OK(cuLaunchHostFunc(stream, count_up, &ran));
  CU_OK(cuMemFree(other));
  CHECK(ran == 1);
  CU_OK(cuMemFree(block));
}

TEST_CASE("simgpu: driver calls are not permitted inside a host function") {
  TestContext context;
  CUresult answer = CUDA_SUCCESS;
  const CUhostFn call = [](void* result) { *static_cast<CUresult*>(result) = cuCtxSynchronize(); };
  CU_OK(cuLaunchHostFunc(nullptr, call, &answer));
  CU_OK(cuCtxSynchronize());
  CHECK(answer == CUDA_ERROR_NOT_PERMITTED);
  expect_misuse({"driver call inside a host function"});
}

TEST_CASE("simgpu: a destroyed stream finishes its work, and its handle is refused") {
  TestContext context;
  std::atomic<int> ran{0};
  CUstream stream{};
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 100; ++i) CU_OK(cuLaunchHostFunc(stream, count_up, &ran));
  CU_OK(cuStreamDestroy(stream));
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_INVALID_HANDLE);
  CU_OK(cuCtxSynchronize());
  CHECK(ran == 100);
  expect_misuse({"use of a stream that is not there"});
}

TEST_CASE("simgpu: a context that isn't there is told") {
  CU_OK(cuInit(0));
  CUcontext gone{};
  {
    TestContext context;
    gone = context.context;
  }
  CUdeviceptr block{};
  CHECK(cuMemAlloc(&block, 16) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuCtxSetCurrent(gone) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuCtxSetCurrent(reinterpret_cast<CUcontext>(&block)) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("simgpu: events belong to a context, and destroyed ones are refused") {
  TestContext first;
  CUevent event{};
  CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  {
    TestContext second;
    CUstream stream{};
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventRecord(event, stream) == CUDA_ERROR_INVALID_HANDLE);
    CU_OK(cuStreamWaitEvent(stream, event, 0));  // waiting may cross contexts
  }
  expect_misuse({"event of another context recorded"});
  CU_OK(cuCtxSetCurrent(first.context));
  CU_OK(cuEventDestroy(event));
  CHECK(cuEventQuery(event) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuEventDestroy(event) == CUDA_ERROR_INVALID_HANDLE);
  expect_misuse({"use of an event that is not there"});
}
