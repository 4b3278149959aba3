// What a test can ask of the simulated driver from inside: counts, failures, misuse, the timeline.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/simgpu_machine.hpp"

static const OwnMachine machine("tiny-1g");

TEST_CASE("simgpu control: calls are counted by name") {
  TestContext context;
  const std::uint64_t before = simgpu_call_count("cuMemGetInfo_v2");
  free_memory();
  free_memory();
  CHECK(simgpu_call_count("cuMemGetInfo_v2") == before + 2);
  CHECK(simgpu_call_count("cuNothing") == UINT64_MAX);
}

TEST_CASE("simgpu control: failures can be asked for and ended at any time") {
  TestContext context;
  CUdeviceptr block{};
  REQUIRE(simgpu_fail("cuMemAlloc:2=719") == 0);
  CU_OK(cuMemAlloc(&block, 512));
  CHECK(cuMemAlloc(&block, 512) == 719);
  CHECK(simgpu_fail("cuMemAlloc:0=2") == -1);  // not understood: the earlier rules stay, their count goes on
  CHECK(simgpu_fail("cuMemAlloc:p1=2") == 0);
  CHECK(cuMemAlloc(&block, 512) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(simgpu_fail("") == 0);
  CU_OK(cuMemAlloc(&block, 512));
}

TEST_CASE("simgpu control: bytes over the link are counted by direction") {
  TestContext context;
  CUdeviceptr block{};
  std::vector<char> host(1000);
  CU_OK(cuMemAlloc(&block, 4096));
  const std::uint64_t in = simgpu_moved_bytes(0), out = simgpu_moved_bytes(1);
  CU_OK(cuMemcpyHtoD(block, host.data(), 1000));
  CU_OK(cuMemcpyDtoD(block + 2048, block, 1000));
  CU_OK(cuMemcpyDtoH(host.data(), block, 300));
  CU_OK(cuCtxSynchronize());
  CHECK(simgpu_moved_bytes(0) == in + 1000);
  CHECK(simgpu_moved_bytes(1) == out + 300);
}

TEST_CASE("simgpu control: misuse is counted by kind and can be forgotten") {
  TestContext context;
  CHECK(simgpu_misuse_count(nullptr) == 0);
  CHECK(cuMemFree(4096) == CUDA_ERROR_INVALID_VALUE);
  CHECK(simgpu_misuse_count("free of memory that was not allocated") == 1);
  CHECK(simgpu_misuse_count(nullptr) == 1);
  simgpu_forget_misuse();
  CHECK(simgpu_misuse_count(nullptr) == 0);
}

TEST_CASE("simgpu control: the timeline tells what each stream did when") {
  TestContext context;
  CUdeviceptr block{};
  CUstream stream{};
  unsigned long long id = 0;
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU_OK(cuStreamGetId(stream, &id));
  CU_OK(cuMemAlloc(&block, 4096));
  CU_OK(cuMemsetD8Async(block, 1, 777, stream));
  CU_OK(cuLaunchHostFunc(
      stream, [](void*) {}, nullptr));
  CU_OK(cuStreamSynchronize(stream));
  const std::string path = machine.folder + "/timeline.json";
  REQUIRE(simgpu_write_timeline(path.c_str()) == 0);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string all = text.str();
  const std::size_t fill = all.find("\"name\": \"fill 777\""), host = all.find("\"name\": \"host function\"");
  CHECK(fill != std::string::npos);
  CHECK(host != std::string::npos);
  CHECK(fill < host);
  CHECK(all.find("\"tid\": " + std::to_string(id) + ",") != std::string::npos);
  CHECK(simgpu_write_timeline("/nowhere/at/all") == -1);
}

// Before the driver reads its environment.
static const int timeline = ::setenv("SIM_TIMELINE", (machine.folder + "/exit.json").c_str(), 1);
