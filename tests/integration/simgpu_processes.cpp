// What processes share on a simulated machine: capacity, chunks, and the memory of the dead.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/simgpu_machine.hpp"

static const OwnMachine machine("tiny-2g");

namespace {

// A chunk of 2 MiB, mapped and exported.
struct SharedChunk {
  CUmemGenericAllocationHandle handle{};
  CUdeviceptr address{};
  vramd::UniqueFd token;

  SharedChunk() {
    const CUmemAllocationProp prop = device_prop(0, true);
    int fd = -1;
    CU_OK(cuMemCreate(&handle, 2 * kMiB, &prop, 0));
    CU_OK(cuMemAddressReserve(&address, 2 * kMiB, 0, 0, 0));
    CU_OK(cuMemMap(address, 2 * kMiB, 0, handle, 0));
    CU_OK(allow(address, 2 * kMiB, 0));
    CU_OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    token.reset(fd);
  }
  void give_up() {
    CU_OK(cuMemUnmap(address, 2 * kMiB));
    CU_OK(cuMemRelease(handle));
    CU_OK(cuMemAddressFree(address, 2 * kMiB));
  }
};

template <class Handle>
std::string hex_of(const Handle& handle) {
  std::string text;
  for (std::size_t i = 0; i < sizeof handle; ++i) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", reinterpret_cast<const unsigned char*>(&handle)[i]);
    text += byte;
  }
  return text;
}

// A machine beside the test's own, for children.
struct OtherMachine {
  explicit OtherMachine(const std::string& tag) : name("test-" + tag + "-" + std::to_string(::getpid())) {}
  ~OtherMachine() { std::filesystem::remove_all("/dev/shm/simgpu-" + name); }
  OtherMachine(const OtherMachine&) = delete;
  OtherMachine& operator=(const OtherMachine&) = delete;
  std::vector<std::string> with(const std::string& variable) const { return {"SIM_NAME=" + name, variable}; }

  const std::string name;
};

std::string content(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("simgpu: another process writes into a chunk that it got as a descriptor") {
  TestContext context;
  SharedChunk chunk;
  ChildProcess child({SIMGPU_CHILD, "write"});
  child.send_descriptor(chunk.token.get());
  CHECK(child.line() == "written");
  CHECK(child.wait() == 0);
  unsigned char byte = 0;
  CU_OK(cuMemcpyDtoH(&byte, chunk.address + 2 * kMiB - 1, 1));
  CHECK(byte == 0x77);
  chunk.give_up();
}

TEST_CASE("simgpu: only chunks created for it are exported") {
  TestContext context;
  const CUmemAllocationProp prop = device_prop(0);
  CUmemGenericAllocationHandle handle{};
  int fd = -1;
  CU_OK(cuMemCreate(&handle, 2 * kMiB, &prop, 0));
  CHECK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemRelease(handle));
}

TEST_CASE("simgpu: a descriptor keeps the chunk alive after everybody released it") {
  TestContext context;
  const std::size_t before = free_memory();
  SharedChunk chunk;
  CU_OK(cuMemsetD8(chunk.address, 0x21, 1));
  CU_OK(cuCtxSynchronize());
  ChildProcess child({SIMGPU_CHILD, "import-dead"});
  child.send_descriptor(chunk.token.get());
  CHECK(child.line() == "received");
  chunk.give_up();
  chunk.token.reset();
  CHECK(before - free_memory() == 302 * kMiB);  // the chunk and the child's context
  child.close_input();
  CHECK(child.line() == "0 33");
  CHECK(child.wait() == 0);
  CHECK(free_memory() == before);
}

TEST_CASE("simgpu: a descriptor of something else is refused") {
  TestContext context;
  int pipes[2];
  REQUIRE(::pipe(pipes) == 0);
  const vramd::UniqueFd first(pipes[0]), second(pipes[1]);
  CUmemGenericAllocationHandle handle{};
  void* const shareable = reinterpret_cast<void*>(static_cast<std::intptr_t>(pipes[0]));
  CHECK(cuMemImportFromShareableHandle(&handle, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("simgpu: what one process holds another can't have, until it is killed") {
  TestContext context;
  const std::size_t before = free_memory();
  const std::string role = GENERATE("hold", "chunk");
  ChildProcess holder({SIMGPU_CHILD, role, "1024"});
  REQUIRE(holder.line() == "held");
  CHECK(before - free_memory() == (1024 + 300) * kMiB);
  CUdeviceptr block{};
  CHECK(cuMemAlloc(&block, 1024 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY);
  ChildProcess refused({SIMGPU_CHILD, role, "1024"});
  CHECK(refused.line() == "2");
  refused.close_input();
  CHECK(refused.wait() == 0);

  holder.kill();
  CU_OK(cuMemAlloc(&block, 1024 * kMiB));  // at the next attempt, with no call in between
  CU_OK(cuMemFree(block));
  CHECK(free_memory() == before);
}

TEST_CASE("simgpu: processes killed at any instruction leave an exact account") {
  TestContext context;
  const std::size_t before = free_memory();
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    ChildProcess first({SIMGPU_CHILD, "churn"}), second({SIMGPU_CHILD, "churn"});
    REQUIRE(first.line() == "churning");
    REQUIRE(second.line() == "churning");
    // The moment of death is the test's input, not a way to wait for something.
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution<>(0, 3000)(random)));
    first.kill();
    second.kill();
    REQUIRE(free_memory() == before);
  }
  CUdeviceptr all{};
  CU_OK(cuMemAlloc(&all, before));
  CU_OK(cuMemFree(all));
}

TEST_CASE("simgpu: in a forked child CUDA is unusable, and its end frees nothing") {
  TestContext context;
  const std::size_t before = free_memory();
  CUdeviceptr block{};
  CU_OK(cuMemAlloc(&block, 64 * kMiB));
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::size_t free = 0, total = 0;
    int count = 0;
    for (const CUresult answer : {cuInit(0), cuMemGetInfo(&free, &total), cuDeviceGetCount(&count), cuMemFree(block)}) {
      if (answer != CUDA_ERROR_NOT_INITIALIZED) ::_exit(1);
    }
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(before - free_memory() == 64 * kMiB);
  CU_OK(cuMemFree(block));
}

TEST_CASE("simgpu: the memory of a killed parent stays taken while a forked child lives") {
  TestContext context;
  const std::size_t before = free_memory();
  ChildProcess parent({SIMGPU_CHILD, "fork-hold", "512"});
  REQUIRE(parent.line() == "held");
  const std::string grandchild = parent.line();
  parent.kill();
  CHECK(before - free_memory() == (512 + 300) * kMiB);
  REQUIRE(::kill(std::stoi(grandchild), SIGKILL) == 0);
  CHECK(parent.line().empty());  // end of output: the grandchild is gone too
  CHECK(free_memory() == before);
}

TEST_CASE("simgpu: legacy IPC opens once and counts, and needs a living exporter of plain memory") {
  TestContext context;
  CUdeviceptr small{}, large{};
  CU_OK(cuMemAlloc(&small, 4096));
  CU_OK(cuMemAlloc(&large, 4 * kMiB));
  for (const CUdeviceptr block : {small, large}) {
    CU_OK(cuMemsetD8(block, 0x44, 4096));
    CU_OK(cuCtxSynchronize());
    CUipcMemHandle handle;
    CU_OK(cuIpcGetMemHandle(&handle, block));
    CUdeviceptr own{};
    CHECK(cuIpcOpenMemHandle(&own, handle, 0) == CUDA_ERROR_INVALID_CONTEXT);  // the exporter's own process
    ChildProcess child({SIMGPU_CHILD, "ipc", hex_of(handle)});
    CHECK(child.line() == "68 1 1");
    CHECK(child.wait() == 0);
    unsigned char byte = 0;
    CU_OK(cuMemcpyDtoH(&byte, block, 1));
    CHECK(byte == 0x66);
    CU_OK(cuMemFree(block));
    ChildProcess late({SIMGPU_CHILD, "ipc", hex_of(handle)});
    if (block == large) CHECK(late.line() == "cuIpcOpenMemHandle failed: 1");
  }
}

TEST_CASE("simgpu: an unknown profile is refused with the list of known ones") {
  ChildProcess child({SIMGPU_CHILD, "devices"}, {"SIM_NAME=test-unknown-" + std::to_string(::getpid()), "SIM_PROFILE=h300"});
  CHECK(child.line() == "100 0");
  std::filesystem::remove_all("/dev/shm/simgpu-test-unknown-" + std::to_string(::getpid()));
}

TEST_CASE("simgpu: a process without descriptors takes nobody for dead") {
  TestContext here;
  ChildProcess holder({SIMGPU_CHILD, "hold", "512"});
  REQUIRE(holder.line() == "held");
  const std::size_t before = free_memory();
  ChildProcess blind({SIMGPU_CHILD, "blind"});
  CHECK(blind.line() == "looked");
  CHECK(blind.wait() == 0);
  CHECK(free_memory() == before);
  CUdeviceptr too_much = 0;
  CHECK(cuMemAlloc(&too_much, before + kMiB) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("simgpu: who asks for another machine than there is, is told") {
  TestContext here;  // the machine is there
  const auto answer = [](const std::string& wishes) {
    const std::string path = machine.folder + "/wish.txt";
    ChildProcess child({"/bin/sh", "-c", wishes + " " SIMGPU_CHILD " devices 2>" + path});
    CHECK(child.wait() == 0);
    return content(path);
  };
  for (const char* wishes : {"SIM_PROFILE=tiny-1g", "SIM_DEVICES=2", "SIM_CAPACITY_MB=1024"}) {
    INFO(wishes);
    CHECK(answer(wishes).find("exists already, with 1 of tiny-2g and 2048 MiB each") != std::string::npos);
  }
  CHECK(answer("SIM_PROFILE=tiny-2g SIM_DEVICES=1 SIM_CAPACITY_MB=2048").empty());
}

TEST_CASE("simgpu: the machine of another user is named as such") {
  const std::string name = "test-closed-" + std::to_string(::getpid()), folder = "/dev/shm/simgpu-" + name;
  const std::string path = machine.folder + "/closed.txt";
  std::filesystem::create_directories(machine.folder);
  std::filesystem::create_directory(folder);
  std::filesystem::permissions(folder, std::filesystem::perms::none);
  const std::string as_somebody = ::geteuid() == 0 ? "setpriv --reuid=65534 --clear-groups " : "";
  ChildProcess child({"/bin/sh", "-c", "SIM_NAME=" + name + " " + as_somebody + SIMGPU_CHILD " devices 2>" + path});
  child.wait();
  std::filesystem::remove(folder);
  const std::string said = content(path);
  if (said.find("simgpu") != 0) {
    WARN("not tested: " + said);  // nobody may not read the build folder
    return;
  }
  CHECK(said.find("It belongs to another user: choose another one with SIM_DIR or SIM_NAME") != std::string::npos);
  CHECK(said.find("Remove") == std::string::npos);
}

TEST_CASE("simgpu: call counts are written at exit, failures injected by name and number") {
  const std::string path = machine.folder + "/counts.json";
  ChildProcess child({SIMGPU_CHILD, "counts"}, {"SIM_COUNTS=" + path});
  CHECK(child.wait() == 0);
  const std::string counts = content(path);
  CHECK(counts.find("\"cuInit\": 1") != std::string::npos);
  CHECK(counts.find("\"cuArrayCreate_v2\": 1") != std::string::npos);
  CHECK(counts.find("\"unimplemented\": 1") != std::string::npos);

  ChildProcess failing({SIMGPU_CHILD, "hold", "1"}, {"SIM_FAIL=cuMemAlloc:1=719"});
  CHECK(failing.line() == "719");
}

TEST_CASE("simgpu: failures by probability come as often as said, and the same with the same seed") {
  const auto drawn = [](const std::string& rule, const std::string& seed) {
    return ChildProcess({SIMGPU_CHILD, "draws"},
                        {"SIM_FAIL=cuMemAlloc:" + rule + "=2", "SIM_SEED=" + seed, "SIM_LOG=/dev/null"})
        .line();
  };
  const std::string first = drawn("p0.1", "1");
  const auto failures = std::count(first.begin(), first.end(), 'f');
  CHECK(failures > 60);  // 1000 draws of 0.1: more than four standard deviations away on either side
  CHECK(failures < 140);
  CHECK(drawn("p0.1", "1") == first);
  CHECK(drawn("p0.1", "2") != first);
  CHECK(drawn("p1", "1") == std::string(1000, 'f'));
  CHECK(drawn("p7", "1") == std::string(1000, '.'));  // not understood, and said so in the log
}

TEST_CASE("simgpu: a killed process's last work goes on, holds its memory and may still write into it") {
  TestContext context;
  SharedChunk chunk;
  const std::size_t before = free_memory();
  unsigned char bytes[2] = {};
  const auto lingers = [&](const char* milliseconds, bool stuck) {
    CU_OK(cuMemsetD8(chunk.address, 1, 2 * kMiB));
    ChildProcess child({SIMGPU_CHILD, stuck ? "stuck" : "hold"}, {std::string("SIM_LINGER_MS=") + milliseconds});
    if (stuck) child.send_descriptor(chunk.token.get());
    CHECK(child.line() == (stuck ? "stuck" : "held"));
    child.kill();
    const bool held = free_memory() < before;
    CU_OK(cuMemcpyDtoH(bytes, chunk.address, 1));
    return held;
  };
  CHECK_FALSE(lingers("0", true));
  CHECK(bytes[0] == 1);
  lingers("2000", false);  // nothing was running
  const auto begin = std::chrono::steady_clock::now();
  while (free_memory() < before && std::chrono::steady_clock::now() - begin < std::chrono::seconds(1)) {
  }
  CHECK(free_memory() == before);
  CHECK(lingers("400", true));
  bool scribbled = false;
  for (int i = 0; i < 200 && free_memory() < before; ++i) {
    CU_OK(cuMemcpyDtoH(bytes, chunk.address, 1));
    scribbled = scribbled || bytes[0] == 0xEE;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(scribbled);
  CHECK(free_memory() == before);
  CU_OK(cuMemsetD8(chunk.address, 2, 2 * kMiB));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CU_OK(cuMemcpyDtoH(bytes, chunk.address, 1));
  CHECK(bytes[0] == 2);
  chunk.give_up();
}

TEST_CASE("simgpu: an event made for it is waited for by another process") {
  TestContext context;
  CUevent event{}, plain{};
  CUipcEventHandle handle{};
  CUstream stream{};
  CU_OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
  CHECK(cuIpcGetEventHandle(&handle, plain) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
  CU_OK(cuIpcGetEventHandle(&handle, event));
  CHECK(cuIpcOpenEventHandle(&plain, handle) == CUDA_ERROR_INVALID_CONTEXT);
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU_OK(cuEventQuery(event));  // never recorded
  StreamGate gate;
  gate.close_in(stream);
  CU_OK(cuEventRecord(event, stream));
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  ChildProcess child({SIMGPU_CHILD, "event", hex_of(handle)});
  CHECK(child.line() == "waiting");
  gate.open();
  CHECK(child.line() == "passed");
  CHECK(child.wait() == 0);
  CU_OK(cuEventSynchronize(event));
  CU_OK(cuEventDestroy(event));
}

TEST_CASE("simgpu: compute modes decide who may make a context") {
  OtherMachine exclusive("exclusive");
  ChildProcess first({SIMGPU_CHILD, "hold"}, exclusive.with("SIM_COMPUTE_MODE=exclusive_process"));
  CHECK(first.line() == "held");
  ChildProcess second({SIMGPU_CHILD, "hold"}, exclusive.with("SIM_COMPUTE_MODE=exclusive_process"));
  CHECK(second.line() == "cuDevicePrimaryCtxRetain failed: 46");
  first.kill();
  ChildProcess third({SIMGPU_CHILD, "hold"}, exclusive.with("SIM_COMPUTE_MODE=exclusive_process"));
  CHECK(third.line() == "held");
  OtherMachine prohibited("prohibited");
  ChildProcess nobody({SIMGPU_CHILD, "hold"}, prohibited.with("SIM_COMPUTE_MODE=prohibited"));
  CHECK(nobody.line() == "cuDevicePrimaryCtxRetain failed: 46");
}

TEST_CASE("simgpu: nobody waits for ever for an event that its last recorder took to the grave") {
  TestContext context;
  CUevent event{};
  CUipcEventHandle handle{};
  CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
  CU_OK(cuIpcGetEventHandle(&handle, event));
  ChildProcess child({SIMGPU_CHILD, "record", hex_of(handle)});
  CHECK(child.line() == "recorded");
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  child.kill();
  CU_OK(cuEventSynchronize(event));
}

TEST_CASE("simgpu: a record that is refused is waited for by nobody") {
  TestContext context;
  CUevent event{};
  CUstream stream{};
  CUgraph graph{};
  CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
  CU_OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuEventRecord(event, nullptr) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CU_OK(cuEventQuery(event));
  expect_misuse({"call that a capture forbids"});
}

TEST_CASE("simgpu: a process without standard streams and with few descriptors writes into no card") {
  const std::string path = machine.folder + "/unwritten.txt";
  ChildProcess child({"/bin/sh", "-c", "ulimit -n 256; exec 0<&- 1>&- 2>&-; exec " SIMGPU_CHILD " print"});
  CHECK(child.wait() == 0);
}

TEST_CASE("simgpu: wishes that are no numbers are refused with a word") {
  OtherMachine other("numbers");
  const std::string path = machine.folder + "/numbers.txt";
  const auto said = [&](const std::string& wish) {
    ChildProcess child(
        {"/bin/sh", "-c", "SIM_NAME=" + other.name + " " + wish + " " SIMGPU_CHILD " hold 2 </dev/null 2>" + path});
    CHECK(child.line() == "held");
    return content(path);
  };
  TestContext here;
  for (const char* wish :
       {"SIM_CAPACITY_MB=-5", "SIM_DEVICES=-1", "SIM_CONTEXT_MB=-1", "SIM_CAPACITY_MB=99999999999999999999"}) {
    INFO(wish);
    CHECK(said(wish).find("is not a whole number") != std::string::npos);
  }
}
