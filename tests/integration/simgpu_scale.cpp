// The largest card in the smallest chunks, by a process with the usual limit of descriptors; and as many processes as there is
// room for.
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/simgpu_machine.hpp"

static const OwnMachine machine("h200-141g");

namespace {

constexpr std::size_t kChunk = 2 * kMiB;

std::size_t mappings() {
  std::size_t lines = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

std::ptrdiff_t descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

}  // namespace

TEST_CASE("simgpu scale: 141 GB in chunks of 2 MiB need no descriptor and at most one mapping each") {
  const rlimit usual{1024, 1024};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &usual) == 0);
  TestContext context;
  const std::size_t before = free_memory(), count = before / kChunk;
  REQUIRE(count > 70000);
  const auto open_before = descriptors();
  const std::size_t mapped_before = mappings();
  const CUmemAllocationProp prop = device_prop(0);
  std::vector<CUmemGenericAllocationHandle> handles(count);
  for (auto& handle : handles) CU_OK(cuMemCreate(&handle, kChunk, &prop, 0));
  CUmemGenericAllocationHandle one_more{};
  CHECK(cuMemCreate(&one_more, kChunk, &prop, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr base{};
  CU_OK(cuMemAddressReserve(&base, count * kChunk, 0, 0, 0));
  for (std::size_t i = 0; i < count; ++i) CU_OK(cuMemMap(base + i * kChunk, kChunk, 0, handles[i], 0));
  CU_OK(allow(base, count * kChunk, 0));
  CHECK(descriptors() == open_before);
  CHECK(mappings() <= mapped_before + count);
  WARN(count << " chunks in " << mappings() - mapped_before << " mappings");

  for (std::size_t i = 0; i < count; i += count / 7) {
    const CUdeviceptr at = base + i * kChunk;
    unsigned seen = 0;
    CU_OK(cuMemsetD32(at, static_cast<unsigned>(i), 1));
    CU_OK(cuMemcpyDtoH(&seen, at, sizeof seen));
    CHECK(seen == i);
  }
  CU_OK(cuMemUnmap(base, count * kChunk));
  for (const auto handle : handles) CU_OK(cuMemRelease(handle));
  CU_OK(cuMemAddressFree(base, count * kChunk));
  CHECK(free_memory() == before);
}

TEST_CASE("simgpu scale: 256 processes, and the 257th is told") {
  TestContext context;
  const std::size_t before = free_memory();
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (int i = 1; i < 256; ++i) {
    children.push_back(std::make_unique<ChildProcess>(std::vector<std::string>{SIMGPU_CHILD, "hold", "2"}));
    REQUIRE(children.back()->line() == "held");
  }
  CHECK(before - free_memory() == 255 * (300 + 2) * kMiB);
  ChildProcess too_many({SIMGPU_CHILD, "hold", "2"});
  CHECK(too_many.line() == "cuInit failed: 304");
  children.clear();
  CHECK(free_memory() == before);
}
