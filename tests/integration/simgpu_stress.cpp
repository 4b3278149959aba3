// Two processes with eight threads each on two devices, four streams a device: random allocations, copies, remaps, graphs and
// shared chunks, every byte checked. VRAMD_STRESS_SECONDS (5) long. One executable with the driver inside serves the
// sanitizers.
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/simgpu_machine.hpp"

namespace {

constexpr int kThreads = 8, kDevices = 2, kStreams = 4;
constexpr std::size_t kChunk = 2 * kMiB;
using Clock = std::chrono::steady_clock;

double seconds_wanted() {
  const char* const text = std::getenv("VRAMD_STRESS_SECONDS");
  return text ? std::strtod(text, nullptr) : 5;
}
bool is_second_process() { return std::getenv("VRAMD_STRESS_SECOND") != nullptr; }

// The second process uses the machine of the first.
struct Machine {
  std::unique_ptr<OwnMachine> own;
  Machine() {
    if (!is_second_process()) own = std::make_unique<OwnMachine>("tiny-1g", "2");
  }
};
const Machine machine;

struct Device {
  CUcontext context{};
  CUstream streams[kStreams] = {};
};

enum class Kind { plain, pooled, mapped, shared };

struct Block {
  Kind kind{};
  int device = 0;
  CUdeviceptr address{};
  std::size_t size = 0;
  unsigned char value = 0;
  CUmemGenericAllocationHandle handle{};  // of a mapped one
};

// Catch's assertions are not thread-safe: a worker tells its first failure as text.
class Worker {
 public:
  Worker(std::vector<Device>& devices, unsigned seed, CUdeviceptr shared) : devices_(devices), random_(seed) {
    if (shared) {
      blocks_.push_back({Kind::shared, 0, shared, kChunk / 2, 1, 0});
      use(0);
      fill(blocks_.back());
    }
  }

  std::string run(Clock::time_point end) {
    while (Clock::now() < end && failure_.empty()) {
      ++operations_;
      switch (pick(9)) {
        case 0:
        case 1: allocate(); break;
        case 2: with_block([&](Block& block) { fill(block); }); break;
        case 3: copy(); break;
        case 4: through_host(); break;
        case 5: with_block([&](Block& block) { check(block); }); break;
        case 6: with_block([&](Block& block) { remap(block); }); break;
        case 7: with_block([&](Block& block) { by_graph(block); }); break;
        default: release(); break;
      }
    }
    while (!blocks_.empty() && failure_.empty()) release(true);
    if (failure_.empty() && operations_ < 5) failure_ = "only " + std::to_string(operations_) + " operations";
    return failure_;
  }

 private:
  std::size_t pick(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }
  CUstream stream(int device) { return devices_[static_cast<std::size_t>(device)].streams[pick(kStreams)]; }
  unsigned char fresh_value() { return static_cast<unsigned char>(1 + pick(255)); }
  void use(int device) { need("cuCtxSetCurrent", cuCtxSetCurrent(devices_[static_cast<std::size_t>(device)].context)); }

  bool need(const char* what, CUresult result) {
    if (result != CUDA_SUCCESS && failure_.empty()) failure_ = std::string(what) + " -> " + std::to_string(result);
    return result == CUDA_SUCCESS;
  }

  template <class Action>
  void with_block(Action action) {
    if (blocks_.empty()) return;
    Block& block = blocks_[pick(blocks_.size())];
    use(block.device);
    action(block);
  }

  void allocate() {
    if (blocks_.size() > 12) return;
    Block block;
    block.kind = static_cast<Kind>(pick(3));
    block.device = static_cast<int>(pick(kDevices));
    block.size = block.kind == Kind::mapped ? kChunk : 1 + pick(pick(4) == 0 ? 3 * kMiB : 64 * 1024);
    use(block.device);
    CUresult result{};
    const CUstream where = stream(block.device);
    if (block.kind == Kind::plain) result = cuMemAlloc(&block.address, block.size);
    if (block.kind == Kind::pooled) result = cuMemAllocAsync(&block.address, block.size, where);
    if (block.kind == Kind::mapped) {
      const CUmemAllocationProp prop = device_prop(block.device);
      result = cuMemCreate(&block.handle, kChunk, &prop, 0);
      if (result == CUDA_SUCCESS) map(block);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return;  // the others have it
    need("allocate", result);
    if (block.kind == Kind::pooled) need("cuStreamSynchronize", cuStreamSynchronize(where));
    blocks_.push_back(block);
    fill(blocks_.back());
  }

  void map(Block& block) {
    need("cuMemAddressReserve", cuMemAddressReserve(&block.address, kChunk, 0, 0, 0));
    need("cuMemMap", cuMemMap(block.address, kChunk, 0, block.handle, 0));
    std::vector<CUmemAccessDesc> access(kDevices);
    for (int device = 0; device < kDevices; ++device) {
      auto& one = access[static_cast<std::size_t>(device)];
      one.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      one.location.id = device;
      one.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    need("cuMemSetAccess", cuMemSetAccess(block.address, kChunk, access.data(), access.size()));
  }

  void fill(Block& block) {
    block.value = fresh_value();
    const CUstream where = stream(block.device);
    need("cuMemsetD8Async", cuMemsetD8Async(block.address, block.value, block.size, where));
    need("cuStreamSynchronize", cuStreamSynchronize(where));
  }

  // Through a stream of the source's device, handed over to one of the target's by an event.
  void copy() {
    if (blocks_.size() < 2) return;
    const Block& from = blocks_[pick(blocks_.size())];
    Block& to = blocks_[pick(blocks_.size())];
    if (&from == &to || from.size < to.size) return;
    use(from.device);
    const CUstream first = stream(from.device), second = stream(to.device);
    CUevent event{};
    need("cuEventCreate", cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    need("cuMemcpyAsync", cuMemcpyAsync(to.address, from.address, to.size, first));
    need("cuEventRecord", cuEventRecord(event, first));
    use(to.device);
    need("cuStreamWaitEvent", cuStreamWaitEvent(second, event, 0));
    const bool flip = pick(2) == 0;
    if (flip) need("cuMemsetD8Async", cuMemsetD8Async(to.address, static_cast<unsigned char>(~from.value), 1, second));
    need("cuStreamSynchronize", cuStreamSynchronize(second));
    need("cuEventDestroy", cuEventDestroy(event));
    to.value = from.value;
    if (flip) {
      unsigned char byte = 0;
      need("cuMemcpyDtoH", cuMemcpyDtoH(&byte, to.address, 1));
      if (byte != static_cast<unsigned char>(~from.value) && failure_.empty()) failure_ = "the event did not order";
      fill(to);
    }
  }

  void through_host() {
    with_block([&](Block& block) {
      const std::size_t size = std::min<std::size_t>(block.size, 64 * 1024);
      const CUstream where = stream(block.device);
      if (pick(2)) {
        std::vector<unsigned char> pageable(size, block.value);
        need("cuMemcpyHtoDAsync", cuMemcpyHtoDAsync(block.address, pageable.data(), size, where));
        std::fill(pageable.begin(), pageable.end(), static_cast<unsigned char>(~block.value));  // it is ours again
      } else {
        void* pinned = nullptr;
        if (!need("cuMemHostAlloc", cuMemHostAlloc(&pinned, size, 0))) return;
        std::memset(pinned, block.value, size);
        need("cuMemcpyHtoDAsync", cuMemcpyHtoDAsync(block.address, pinned, size, where));
        need("cuStreamSynchronize", cuStreamSynchronize(where));
        need("cuMemFreeHost", cuMemFreeHost(pinned));
      }
      need("cuStreamSynchronize", cuStreamSynchronize(where));
      check(block);
    });
  }

  void check(const Block& block) {
    std::vector<unsigned char> bytes(block.size);
    const CUstream where = stream(block.device);
    need("cuMemcpyDtoHAsync", cuMemcpyDtoHAsync(bytes.data(), block.address, block.size, where));
    need("cuStreamSynchronize", cuStreamSynchronize(where));
    const bool same = bytes[0] == block.value && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
    if (!same && failure_.empty()) failure_ = "wrong byte";
  }

  void remap(Block& block) {
    if (block.kind != Kind::mapped) return;
    const CUdeviceptr before = block.address;
    need("cuMemUnmap", cuMemUnmap(before, kChunk));
    map(block);
    need("cuMemAddressFree", cuMemAddressFree(before, kChunk));
    check(block);
  }

  void by_graph(Block& block) {
    CUgraph graph{};
    CUgraphExec exec{};
    CUgraphNode node{};
    CUDA_MEMSET_NODE_PARAMS params{};
    params.dst = block.address;
    params.value = block.value = fresh_value();
    params.elementSize = 1;
    params.width = block.size;
    params.height = 1;
    need("cuGraphCreate", cuGraphCreate(&graph, 0));
    need("cuGraphAddMemsetNode",
         cuGraphAddMemsetNode(&node, graph, nullptr, 0, &params, devices_[static_cast<std::size_t>(block.device)].context));
    need("cuGraphInstantiate", cuGraphInstantiate(&exec, graph, 0));
    const CUstream where = stream(block.device);
    need("cuGraphLaunch", cuGraphLaunch(exec, where));
    need("cuGraphExecDestroy", cuGraphExecDestroy(exec));
    need("cuGraphDestroy", cuGraphDestroy(graph));
    need("cuStreamSynchronize", cuStreamSynchronize(where));
    check(block);
  }

  void release(bool last = false) {
    if (blocks_.empty()) return;
    const std::size_t index = last ? blocks_.size() - 1 : pick(blocks_.size());
    const Block block = blocks_[index];
    use(block.device);
    check(block);
    if (block.kind == Kind::shared && !last) return;
    if (block.kind == Kind::plain) need("cuMemFree", cuMemFree(block.address));
    if (block.kind == Kind::pooled) need("cuMemFreeAsync", cuMemFreeAsync(block.address, stream(block.device)));
    if (block.kind == Kind::mapped) {
      need("cuMemUnmap", cuMemUnmap(block.address, kChunk));
      need("cuMemRelease", cuMemRelease(block.handle));
      need("cuMemAddressFree", cuMemAddressFree(block.address, kChunk));
    }
    blocks_[index] = blocks_.back();
    blocks_.pop_back();
  }

  std::vector<Device>& devices_;
  std::mt19937 random_;
  std::vector<Block> blocks_;
  std::string failure_;
  std::uint64_t operations_ = 0;
};

// A chunk of device 0, half of it this process's and half the other's.
CUdeviceptr map_shared(CUmemGenericAllocationHandle handle) {
  CUdeviceptr address{};
  CU_OK(cuMemAddressReserve(&address, kChunk, 0, 0, 0));
  CU_OK(cuMemMap(address, kChunk, 0, handle, 0));
  CU_OK(allow(address, kChunk, 0));
  return address;
}

std::vector<Device> open_devices() {
  CU_OK(cuInit(0));
  std::vector<Device> devices(kDevices);
  for (int i = 0; i < kDevices; ++i) {
    Device& device = devices[static_cast<std::size_t>(i)];
    CU_OK(cuDevicePrimaryCtxRetain(&device.context, i));
    CU_OK(cuCtxSetCurrent(device.context));
    for (CUstream& stream : device.streams) CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }
  CU_OK(cuCtxSetCurrent(devices[0].context));
  return devices;
}

void run_workers(std::vector<Device>& devices, unsigned seed, CUdeviceptr shared) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds_wanted()));
  std::vector<std::string> failures(kThreads);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { failures[i] = Worker(devices, seed + i, i == 0 ? shared : 0).run(end); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) CHECK(failure == "");
  for (const Device& device : devices) {
    CU_OK(cuCtxSetCurrent(device.context));
    CU_OK(cuCtxSynchronize());
  }
}

}  // namespace

TEST_CASE("simgpu stress: two processes, many threads, every byte") {
  if (is_second_process()) return;
  std::vector<Device> devices = open_devices();
  const std::size_t before = free_memory();
  const CUmemAllocationProp prop = device_prop(0, true);
  CUmemGenericAllocationHandle handle{};
  int fd = -1;
  CU_OK(cuMemCreate(&handle, kChunk, &prop, 0));
  CU_OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  ChildProcess second({"/proc/self/exe", "[.second]"}, {"VRAMD_STRESS_SECOND=1"});
  second.send_descriptor(fd);
  ::close(fd);
  const CUdeviceptr shared = map_shared(handle);
  run_workers(devices, 1000, shared);
  std::string last, line;
  while (!(line = second.line()).empty()) last = line + "\n" + last;
  INFO("the second process said, last line first: " << last);
  CHECK(second.wait() == 0);
  CU_OK(cuCtxSetCurrent(devices[0].context));
  CU_OK(cuMemUnmap(shared, kChunk));
  CU_OK(cuMemRelease(handle));
  CU_OK(cuMemAddressFree(shared, kChunk));
  CHECK(free_memory() == before);
}

TEST_CASE("simgpu stress: the second process", "[.second]") {
  REQUIRE(is_second_process());
  const int fd = receive_descriptor(STDIN_FILENO);
  REQUIRE(fd >= 0);
  std::vector<Device> devices = open_devices();
  CUmemGenericAllocationHandle handle{};
  void* const shareable = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
  CU_OK(cuMemImportFromShareableHandle(&handle, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  run_workers(devices, 2000, map_shared(handle) + kChunk / 2);
  CHECK(simgpu_misuse_count(nullptr) == 0);
}
