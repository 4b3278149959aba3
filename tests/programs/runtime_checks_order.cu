// Streams, events, host functions, graphs, the stream-ordered allocator, threads.
#include <atomic>
#include <cstdint>
#include <thread>

#include "tests/programs/runtime_checks.hpp"

namespace {

constexpr int kCount = 4096;
constexpr std::size_t kBytes = kCount * sizeof(int);

struct Streams {
  cudaStream_t a = nullptr, b = nullptr;
  ~Streams() {
    if (a != nullptr) (void)cudaStreamDestroy(a);
    if (b != nullptr) (void)cudaStreamDestroy(b);
  }
  cudaError_t create() {
    const cudaError_t error = cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    return error != cudaSuccess ? error : cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
  }
};

void add(int* values, int amount, cudaStream_t stream) { launch_add_to_each(values, amount, kCount, stream); }

Verdict expect_all(const int* device, int expected) {
  std::vector<int> out(kCount);
  TRY(cudaMemcpy(out.data(), device, kBytes, cudaMemcpyDeviceToHost));
  for (int value : out)
    if (value != expected) return "found " + std::to_string(value) + " instead of " + std::to_string(expected);
  return {};
}

Verdict stream_order() {
  Streams streams;
  TRY(streams.create());
  DeviceArray<int> values(kCount);
  TRY(values.error());
  TRY(cudaMemsetAsync(values.get(), 0, kBytes, streams.a));
  for (int i = 0; i < 10; ++i) add(values.get(), 3, streams.a);
  TRY(cudaGetLastError());
  TRY(cudaStreamSynchronize(streams.a));
  EXPECT(cudaStreamQuery(streams.a) == cudaSuccess);
  return expect_all(values.get(), 30);
}

Verdict events_order_streams() {
  Streams streams;
  TRY(streams.create());
  DeviceArray<int> values(kCount), copy(kCount);
  TRY(values.error());
  TRY(copy.error());
  cudaEvent_t start = nullptr, done = nullptr;
  TRY(cudaEventCreate(&start));
  TRY(cudaEventCreate(&done));
  TRY(cudaEventRecord(start, streams.a));
  TRY(cudaMemsetAsync(values.get(), 0, kBytes, streams.a));
  for (int i = 0; i < 20; ++i) add(values.get(), 1, streams.a);
  TRY(cudaGetLastError());
  TRY(cudaEventRecord(done, streams.a));
  TRY(cudaStreamWaitEvent(streams.b, done, 0));
  TRY(cudaMemcpyAsync(copy.get(), values.get(), kBytes, cudaMemcpyDeviceToDevice, streams.b));
  TRY(cudaStreamSynchronize(streams.b));
  TRY(cudaEventSynchronize(done));
  EXPECT(cudaEventQuery(done) == cudaSuccess);
  float milliseconds = -1;
  TRY(cudaEventElapsedTime(&milliseconds, start, done));
  EXPECT(milliseconds >= 0);
  TRY(cudaEventDestroy(start));
  TRY(cudaEventDestroy(done));
  return expect_all(copy.get(), 20);
}

Verdict default_stream_orders_all() {
  DeviceArray<int> values(kCount);
  TRY(values.error());
  cudaStream_t blocking = nullptr;
  TRY(cudaStreamCreate(&blocking));
  TRY(cudaMemsetAsync(values.get(), 0, kBytes, cudaStreamLegacy));
  add(values.get(), 1, blocking);
  add(values.get(), 2, cudaStreamLegacy);  // after what blocking streams hold
  add(values.get(), 4, blocking);
  TRY(cudaGetLastError());
  TRY(cudaDeviceSynchronize());
  TRY(cudaStreamDestroy(blocking));
  return expect_all(values.get(), 7);
}

Verdict host_functions() {
  Streams streams;
  TRY(streams.create());
  DeviceArray<int> values(kCount);
  TRY(values.error());
  std::atomic<int> calls{0};
  TRY(cudaMemsetAsync(values.get(), 0, kBytes, streams.a));
  TRY(cudaLaunchHostFunc(
      streams.a, [](void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }, &calls));
  TRY(cudaStreamAddCallback(
      streams.a,
      [](cudaStream_t, cudaError_t status, void* data) {
        static_cast<std::atomic<int>*>(data)->fetch_add(status == cudaSuccess ? 10 : 1000);
      },
      &calls, 0));
  TRY(cudaStreamSynchronize(streams.a));
  EXPECT(calls.load() == 11);
  return {};
}

Verdict captured_graph() {
  Streams streams;
  TRY(streams.create());
  DeviceArray<int> values(kCount), copy(kCount);
  TRY(values.error());
  TRY(copy.error());
  TRY(cudaMemset(values.get(), 0, kBytes));
  TRY(cudaMemset(copy.get(), 0, kBytes));
  TRY(cudaDeviceSynchronize());  // fills may still run, and non-blocking streams do not wait for the default
                                 // one
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaStreamCaptureStatus status{};
  TRY(cudaStreamBeginCapture(streams.a, cudaStreamCaptureModeThreadLocal));
  add(values.get(), 5, streams.a);
  TRY(cudaGetLastError());
  TRY(cudaMemcpyAsync(copy.get(), values.get(), kBytes, cudaMemcpyDeviceToDevice, streams.a));
  TRY(cudaStreamIsCapturing(streams.a, &status));
  TRY(cudaStreamEndCapture(streams.a, &graph));
  EXPECT(status == cudaStreamCaptureStatusActive);
  if (Verdict early = expect_all(values.get(), 0); !early.empty()) return "capture ran the kernel: " + early;
  std::size_t nodes = 0;
  TRY(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 2);
  TRY(cudaGraphInstantiate(&exec, graph, 0));
  TRY(cudaGraphLaunch(exec, streams.a));
  TRY(cudaGraphLaunch(exec, streams.a));
  TRY(cudaStreamSynchronize(streams.a));
  TRY(cudaGraphExecDestroy(exec));
  TRY(cudaGraphDestroy(graph));
  if (Verdict wrong = expect_all(values.get(), 10); !wrong.empty()) return wrong;
  return expect_all(copy.get(), 10);
}

Verdict stream_ordered_memory() {
  Streams streams;
  TRY(streams.create());
  int* values = nullptr;
  TRY(cudaMallocAsync(&values, kBytes, streams.a));
  TRY(cudaMemsetAsync(values, 0, kBytes, streams.a));
  add(values, 9, streams.a);
  TRY(cudaGetLastError());
  TRY(cudaStreamSynchronize(streams.a));
  if (Verdict wrong = expect_all(values, 9); !wrong.empty()) return wrong;
  TRY(cudaFreeAsync(values, streams.a));
  TRY(cudaStreamSynchronize(streams.a));
  return {};
}

// Memory of the stream-ordered allocator may be freed by the ordinary call.
Verdict stream_ordered_memory_freed_plainly() {
  Streams streams;
  TRY(streams.create());
  int* values = nullptr;
  TRY(cudaMallocAsync(&values, kBytes, streams.a));
  TRY(cudaStreamSynchronize(streams.a));
  TRY(cudaFree(values));
  return {};
}

Verdict default_pool() {
  cudaMemPool_t pool = nullptr, current = nullptr;
  TRY(cudaDeviceGetDefaultMemPool(&pool, 0));
  TRY(cudaDeviceGetMemPool(&current, 0));
  EXPECT(pool != nullptr && pool == current);
  std::uint64_t before = 1, threshold = 123456789, after = 0;
  TRY(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &before));
  TRY(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  TRY(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &after));
  EXPECT(after == threshold);
  TRY(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &before));
  TRY(cudaMemPoolTrimTo(pool, 0));
  return {};
}

Verdict one_threads_work() {
  cudaStream_t stream = nullptr;
  TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 1; round <= 20; ++round) {
    DeviceArray<int> values(kCount);
    TRY(values.error());
    TRY(cudaMemsetAsync(values.get(), 0, kBytes, stream));
    add(values.get(), round, stream);
    TRY(cudaGetLastError());
    TRY(cudaStreamSynchronize(stream));
    if (Verdict wrong = expect_all(values.get(), round); !wrong.empty()) return wrong;
  }
  TRY(cudaStreamDestroy(stream));
  return {};
}

Verdict threads() {
  std::vector<Verdict> verdicts(4);
  std::vector<std::thread> workers;
  for (Verdict& verdict : verdicts) workers.emplace_back([&verdict] { verdict = one_threads_work(); });
  for (std::thread& worker : workers) worker.join();
  for (const Verdict& verdict : verdicts)
    if (!verdict.empty()) return verdict;
  return {};
}

Verdict last_error_is_the_threads_own() {
  void* pointer = nullptr;
  std::size_t free = 0, total = 0;
  TRY(cudaMemGetInfo(&free, &total));
  EXPECT(cudaMalloc(&pointer, total * 4) == cudaErrorMemoryAllocation);
  cudaError_t elsewhere = cudaErrorUnknown;
  std::thread([&] { elsewhere = cudaGetLastError(); }).join();
  EXPECT(elsewhere == cudaSuccess);
  EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
  return {};
}

}  // namespace

std::vector<Check> order_checks() {
  return {{"stream: operations run in order", stream_order},
          {"stream: the default stream orders blocking ones", default_stream_orders_all},
          {"event: orders two streams, measures time", events_order_streams},
          {"host function and callback in a stream", host_functions},
          {"graph: capture, instantiate, launch twice", captured_graph},
          {"pool: cudaMallocAsync and cudaFreeAsync", stream_ordered_memory},
          {"pool: cudaMallocAsync and cudaFree", stream_ordered_memory_freed_plainly},
          {"pool: default pool and its release threshold", default_pool},
          {"threads: four at once", threads},
          {"threads: each has its own last error", last_error_is_the_threads_own}};
}
