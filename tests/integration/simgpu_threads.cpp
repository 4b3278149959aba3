// Four threads with two streams each allocate, fill, copy and free at random; every byte is checked.
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/simgpu_machine.hpp"

static const OwnMachine machine("tiny-2g");

namespace {

struct Block {
  CUdeviceptr address;
  std::size_t size;
  unsigned char value;
};

// Catch's assertions are not thread-safe: a worker tells its first failure as text.
class Worker {
 public:
  Worker(CUcontext context, unsigned seed) : context_(context), random_(seed) {}

  std::string run(int steps) {
    need("cuCtxSetCurrent", cuCtxSetCurrent(context_));
    for (CUstream& stream : streams_) need("cuStreamCreate", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int step = 0; step < steps && failure_.empty(); ++step) {
      const std::size_t choice = blocks_.size() < 4 ? 0 : pick(6);
      if (choice <= 1) allocate();
      if (choice == 2) copy();
      if (choice == 3) check(blocks_[pick(blocks_.size())]);
      if (choice >= 4) release();
    }
    while (!blocks_.empty() && failure_.empty()) release();
    for (const CUstream stream : streams_) need("cuStreamDestroy", cuStreamDestroy(stream));
    return failure_;
  }

 private:
  std::size_t pick(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }
  CUstream stream() { return streams_[pick(2)]; }

  void need(const char* what, CUresult result) {
    if (result != CUDA_SUCCESS && failure_.empty()) failure_ = std::string(what) + " -> " + std::to_string(result);
  }

  void allocate() {
    Block block{0, 1 + pick(pick(8) == 0 ? 3 * kMiB : 64 * 1024), static_cast<unsigned char>(1 + pick(255))};
    const CUstream where = stream();
    need("allocate", pick(2) ? cuMemAlloc(&block.address, block.size) : cuMemAllocAsync(&block.address, block.size, where));
    need("cuMemsetD8Async", cuMemsetD8Async(block.address, block.value, block.size, where));
    need("cuStreamSynchronize", cuStreamSynchronize(where));
    blocks_.push_back(block);
  }

  // From one block into another through both streams, ordered by an event.
  void copy() {
    const Block& from = blocks_[pick(blocks_.size())];
    Block& to = blocks_[pick(blocks_.size())];
    if (&from == &to || from.size < to.size) return;
    CUevent event{};
    need("cuEventCreate", cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    need("cuMemcpyDtoDAsync", cuMemcpyDtoDAsync(to.address, from.address, to.size, streams_[0]));
    need("cuEventRecord", cuEventRecord(event, streams_[0]));
    need("cuStreamWaitEvent", cuStreamWaitEvent(streams_[1], event, 0));
    to.value = static_cast<unsigned char>(from.value ^ 0x55);
    need("cuMemsetD8Async", cuMemsetD8Async(to.address, to.value, to.size, streams_[1]));
    need("cuStreamSynchronize", cuStreamSynchronize(streams_[1]));
    need("cuEventDestroy", cuEventDestroy(event));
  }

  void check(const Block& block) {
    std::vector<unsigned char> bytes(block.size);
    const CUstream where = stream();
    need("cuMemcpyDtoHAsync", cuMemcpyDtoHAsync(bytes.data(), block.address, block.size, where));
    need("cuStreamSynchronize", cuStreamSynchronize(where));
    for (const unsigned char byte : bytes) {
      if (byte != block.value && failure_.empty()) failure_ = "wrong byte";
    }
  }

  void release() {
    const std::size_t index = pick(blocks_.size());
    check(blocks_[index]);
    need("free", pick(2) ? cuMemFree(blocks_[index].address) : cuMemFreeAsync(blocks_[index].address, stream()));
    blocks_[index] = blocks_.back();
    blocks_.pop_back();
  }

  CUcontext context_;
  std::mt19937 random_;
  CUstream streams_[2] = {};
  std::vector<Block> blocks_;
  std::string failure_;
};

}  // namespace

TEST_CASE("simgpu: threads with streams of their own don't disturb each other") {
  TestContext context;
  const std::size_t before = free_memory();
  constexpr int kThreads = 4, kSteps = 400;
  std::vector<std::string> failures(kThreads);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { failures[i] = Worker(context.context, 1234 + i).run(kSteps); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) CHECK(failure == "");
  CU_OK(cuCtxSynchronize());
  CHECK(free_memory() == before);
}

TEST_CASE("simgpu: threads may map, use and unmap chunks at the same time") {
  TestContext context;
  const std::size_t before = free_memory();
  std::vector<std::thread> threads;
  std::vector<int> failures(4);
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const CUmemAllocationProp prop = device_prop(0);
      bool fine = cuCtxSetCurrent(context.context) == CUDA_SUCCESS;
      for (unsigned round = 0; round < 100 && fine; ++round) {
        CUmemGenericAllocationHandle handle{};
        CUdeviceptr address{};
        unsigned read = 0;
        fine = cuMemCreate(&handle, 2 * kMiB, &prop, 0) == CUDA_SUCCESS &&
               cuMemAddressReserve(&address, 2 * kMiB, 0, 0, 0) == CUDA_SUCCESS &&
               cuMemMap(address, 2 * kMiB, 0, handle, 0) == CUDA_SUCCESS && cuMemRelease(handle) == CUDA_SUCCESS &&
               allow(address, 2 * kMiB, 0) == CUDA_SUCCESS &&
               cuMemsetD32(address + kMiB, i * 1000 + round, 1) == CUDA_SUCCESS &&
               cuMemcpyDtoH(&read, address + kMiB, 4) == CUDA_SUCCESS && read == i * 1000 + round &&
               cuMemUnmap(address, 2 * kMiB) == CUDA_SUCCESS && cuMemAddressFree(address, 2 * kMiB) == CUDA_SUCCESS;
      }
      failures[i] = !fine;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int failure : failures) CHECK(failure == 0);
  CHECK(free_memory() == before);
}

TEST_CASE("simgpu: a context may be reset while threads allocate, fill and free in it") {
  CU_OK(cuInit(0));
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([i] {
      for (unsigned round = 0; round < 300; ++round) {
        CUcontext context{};
        CUdeviceptr address{};
        if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) continue;
        cuCtxSetCurrent(context);
        if (cuMemAlloc(&address, (1 + (round + i) % 40) * kMiB) == CUDA_SUCCESS) {
          cuMemsetD8(address, 1, 4096);
          cuMemFree(address);
        }
        cuDevicePrimaryCtxRelease(0);
      }
    });
  }
  for (int round = 0; round < 100; ++round) CU_OK(cuDevicePrimaryCtxReset(0));
  for (std::thread& thread : threads) thread.join();
  TestContext after;  // what the threads' calls answered is open; the device must be whole
  CUdeviceptr address{};
  CU_OK(cuMemAlloc(&address, 1024 * kMiB));
  CU_OK(cuMemFree(address));
  simgpu_forget_misuse();  // resetting under running work is misuse; how often it hits is open
}
