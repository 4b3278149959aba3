// Capture and graphs of the simulated driver.
#include <vector>

#include "tests/support/simgpu_machine.hpp"

static const OwnMachine machine("tiny-1g");

namespace {

struct Captured {
  CUgraph graph{};
  CUgraphExec exec{};
  explicit Captured(CUstream stream) {
    CU_OK(cuStreamEndCapture(stream, &graph));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
  }
  ~Captured() {
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
  }
};

unsigned char byte_at(CUdeviceptr address) {
  unsigned char byte = 0;
  CU_OK(cuMemcpyDtoH(&byte, address, 1));
  return byte;
}

}  // namespace

TEST_CASE("simgpu: captured work runs at each launch, not at the capture") {
  TestContext context;
  CUstream stream{};
  CUdeviceptr block{};
  void* pinned = nullptr;
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU_OK(cuMemAlloc(&block, 4096));
  CU_OK(cuMemsetD8(block, 0, 4096));
  CU_OK(cuMemHostAlloc(&pinned, 1, 0));
  CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureStatus status{};
  CU_OK(cuStreamIsCapturing(stream, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CU_OK(cuMemsetD8Async(block, 3, 4096, stream));
  CU_OK(cuMemcpyHtoDAsync(block, pinned, 1, stream));
  const Captured captured(stream);
  std::size_t nodes = 0;
  CU_OK(cuGraphGetNodes(captured.graph, nullptr, &nodes));
  CHECK(nodes == 2);
  CHECK(byte_at(block + 1) == 0);

  for (const unsigned char value : {'\5', '\6'}) {
    *static_cast<unsigned char*>(pinned) = value;
    CU_OK(cuGraphLaunch(captured.exec, stream));
    CU_OK(cuStreamSynchronize(stream));
    CHECK(byte_at(block) == value);
    CHECK(byte_at(block + 1) == 3);
  }
  CU_OK(cuMemFreeHost(pinned));
  CU_OK(cuMemFree(block));
}

TEST_CASE("simgpu: a second stream joins a capture by events, and must be joined back") {
  TestContext context;
  CUstream origin{}, side{};
  CUevent fork{}, join{};
  CUdeviceptr block{};
  const bool joined = GENERATE(true, false);
  CU_OK(cuStreamCreate(&origin, CU_STREAM_NON_BLOCKING));
  CU_OK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
  CU_OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  CU_OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  CU_OK(cuMemAlloc(&block, 4096));
  CU_OK(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CU_OK(cuMemsetD8Async(block, 1, 4096, origin));
  CU_OK(cuEventRecord(fork, origin));
  CHECK(cuEventQuery(fork) == CUDA_ERROR_CAPTURED_EVENT);
  CU_OK(cuStreamWaitEvent(side, fork, 0));
  CU_OK(cuMemsetD8Async(block, 2, 4096, side));
  CU_OK(cuEventRecord(join, side));
  if (joined) {
    CU_OK(cuStreamWaitEvent(origin, join, 0));
    const Captured captured(origin);
    CU_OK(cuGraphLaunch(captured.exec, origin));
    CU_OK(cuStreamSynchronize(origin));
    CHECK(byte_at(block) == 2);
  } else {
    CUgraph graph{};
    CHECK(cuStreamEndCapture(origin, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  }
  CUstreamCaptureStatus status{};
  CU_OK(cuStreamIsCapturing(side, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  CU_OK(cuMemFree(block));
}

TEST_CASE("simgpu: synchronising or freeing in a global capture is refused and invalidates it") {
  TestContext context;
  CUstream stream{};
  CUdeviceptr block{};
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU_OK(cuMemAlloc(&block, 4096));
  const int what = GENERATE(0, 1, 2);
  CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  const CUresult answer = what == 0 ? cuStreamSynchronize(stream) : what == 1 ? cuMemFree(block) : cuCtxSynchronize();
  CHECK(answer == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(cuMemsetD8Async(block, 1, 1, stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CUgraph graph{};
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(graph == nullptr);
  CU_OK(cuStreamSynchronize(stream));
  CU_OK(cuMemFree(block));
  expect_misuse({"call that a capture forbids"});
}

TEST_CASE("simgpu: a thread that exchanged its mode to relaxed may free during a capture") {
  TestContext context;
  CUstream stream{};
  CUdeviceptr block{};
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU_OK(cuMemAlloc(&block, 4096));
  CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CU_OK(cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
  CU_OK(cuMemFree(block));
  CU_OK(cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  CUgraph graph{};
  CU_OK(cuStreamEndCapture(stream, &graph));
  CU_OK(cuGraphDestroy(graph));
}

TEST_CASE("simgpu: the legacy stream can't be used while a blocking stream captures") {
  TestContext context;
  CUstream stream{};
  CUdeviceptr block{};
  CU_OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  CU_OK(cuMemAlloc(&block, 4096));
  CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuMemsetD8Async(block, 1, 1, nullptr) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CUgraph graph{};
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CU_OK(cuMemFree(block));
  expect_misuse({"call that a capture forbids"});
}

TEST_CASE("simgpu: a capture over two contexts leaves no stream behind") {
  TestContext first;
  CUdeviceptr block{};
  CUstream origin{}, other{}, unrelated{};
  CUevent fork{}, join{};
  CU_OK(cuStreamCreate(&origin, CU_STREAM_NON_BLOCKING));
  CU_OK(cuStreamCreate(&unrelated, CU_STREAM_NON_BLOCKING));
  CU_OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  TestContext second;
  CU_OK(cuMemAlloc(&block, 4096));
  CU_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CU_OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  CU_OK(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU_OK(cuEventRecord(fork, origin));
  CU_OK(cuStreamWaitEvent(other, fork, 0));
  CU_OK(cuMemsetD8Async(block, 1, 16, other));
  CU_OK(cuEventRecord(join, other));
  CU_OK(cuStreamWaitEvent(origin, join, 0));
  CUgraph graph{};
  CU_OK(cuStreamEndCapture(origin, &graph));
  CU_OK(cuStreamBeginCapture(unrelated, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU_OK(cuMemsetD8Async(block, 9, 16, other));
  CU_OK(cuStreamSynchronize(other));
  CHECK(byte_at(block) == 9);
  CU_OK(cuStreamEndCapture(unrelated, &graph));
}

TEST_CASE("simgpu: a capture ends with its context") {
  TestContext outer;
  {
    TestContext inner;
    CUstream stream{};
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  }
  CU_OK(cuCtxSetCurrent(outer.context));
  CUdeviceptr block{};
  CU_OK(cuMemAlloc(&block, 16));
  CU_OK(cuCtxSynchronize());
  CU_OK(cuMemFree(block));
}

TEST_CASE("simgpu: the legacy stream can't join a capture") {
  TestContext context;
  CUstream stream{};
  CUevent event{};
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU_OK(cuEventRecord(event, stream));
  CHECK(cuStreamWaitEvent(nullptr, event, 0) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CUgraph graph{};
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  expect_misuse({"call that a capture forbids"});
}

TEST_CASE("simgpu: a free that a capture refuses leaves the block to the program") {
  TestContext context;
  CUstream blocking{}, other{};
  CUdeviceptr block{};
  CU_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  CU_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CU_OK(cuMemAllocAsync(&block, 4096, other));
  CU_OK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuMemFreeAsync(block, nullptr) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CUgraph graph{};
  CHECK(cuStreamEndCapture(blocking, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CU_OK(cuMemFreeAsync(block, other));
  CU_OK(cuStreamSynchronize(other));
  expect_misuse({"call that a capture forbids"});
}

TEST_CASE("simgpu: a node that a capture depends on may be destroyed") {
  TestContext context;
  CUstream stream{};
  CUdeviceptr block{};
  CUgraph graph{};
  CUstreamCaptureStatus status{};
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU_OK(cuMemAlloc(&block, 4096));
  CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU_OK(cuMemsetD8Async(block, 1, 16, stream));
  const CUgraphNode* after = nullptr;
  std::size_t count = 0;
  CU_OK(cuStreamGetCaptureInfo(stream, &status, nullptr, &graph, &after, nullptr, &count));
  REQUIRE(count == 1);
  CU_OK(cuGraphDestroyNode(after[0]));
  CU_OK(cuMemsetD8Async(block, 2, 16, stream));
  const Captured captured(stream);
  std::size_t nodes = 0;
  CU_OK(cuGraphGetNodes(captured.graph, nullptr, &nodes));
  CHECK(nodes == 1);
}
