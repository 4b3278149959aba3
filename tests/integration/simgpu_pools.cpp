// Stream-ordered pools, managed memory, batches of copies.
#include <array>
#include <vector>

#include "tests/support/simgpu_machine.hpp"

static const OwnMachine machine("tiny-1g", "2");

namespace {

std::uint64_t bytes_of(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = 0;
  CU_OK(cuMemPoolGetAttribute(pool, attribute, &value));
  return value;
}
std::uint64_t reserved(CUmemoryPool pool) { return bytes_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }
std::uint64_t used(CUmemoryPool pool) { return bytes_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT); }

struct PoolStand {
  TestContext context;
  CUmemoryPool pool{};
  CUstream stream{};

  explicit PoolStand(cuuint64_t threshold = 0) {
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CU_OK(cuMemPoolCreate(&pool, &props));
    CU_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }
  CUdeviceptr take(std::size_t size, CUstream where) const {
    CUdeviceptr block{};
    CU_OK(cuMemAllocFromPoolAsync(&block, size, pool, where));
    return block;
  }
};

}  // namespace

TEST_CASE("simgpu: a pool keeps what is freed until a synchronisation, and then what its threshold allows") {
  const bool keeps = GENERATE(false, true);
  PoolStand s(keeps ? 64 * kMiB : 0);
  const std::size_t before = free_memory();
  const CUdeviceptr block = s.take(32 * kMiB, s.stream);
  CHECK(used(s.pool) == 32 * kMiB);
  CU_OK(cuMemFreeAsync(block, s.stream));
  CU_OK(cuStreamSynchronize(s.stream));
  CHECK(used(s.pool) == 0);
  CHECK(reserved(s.pool) == (keeps ? 32 * kMiB : 0));
  CHECK(before - free_memory() == (keeps ? 32 * kMiB : 0));
  CHECK(bytes_of(s.pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 32 * kMiB);
  cuuint64_t zero = 0;
  CU_OK(cuMemPoolSetAttribute(s.pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  CHECK(bytes_of(s.pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
  CU_OK(cuMemPoolTrimTo(s.pool, 0));
  CHECK(reserved(s.pool) == 0);
  CHECK(free_memory() == before);
  CU_OK(cuMemPoolDestroy(s.pool));
}

TEST_CASE("simgpu: a kept block is used again; by another stream only where the pool allows it") {
  PoolStand s(256 * kMiB);
  CUstream other{};
  CU_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr block = s.take(32 * kMiB, s.stream);
  CU_OK(cuMemFreeAsync(block, s.stream));
  CU_OK(cuStreamSynchronize(s.stream));
  int no = 0;
  CU_OK(cuMemPoolSetAttribute(s.pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &no));
  const CUdeviceptr elsewhere = s.take(32 * kMiB, other);
  CHECK(elsewhere != block);
  CHECK(s.take(20 * kMiB, s.stream) == block);
  CHECK(reserved(s.pool) == 64 * kMiB);
  CU_OK(cuMemPoolDestroy(s.pool));
}

TEST_CASE("simgpu: what a pool keeps is given back before memory is refused") {
  PoolStand s(1024 * kMiB);
  const std::size_t before = free_memory();
  const CUdeviceptr block = s.take(512 * kMiB, s.stream);
  CU_OK(cuMemFreeAsync(block, s.stream));
  CU_OK(cuStreamSynchronize(s.stream));
  CUdeviceptr most{};
  CU_OK(cuMemAlloc(&most, before - 4 * kMiB));
  CU_OK(cuMemFree(most));
  CU_OK(cuMemPoolDestroy(s.pool));
}

TEST_CASE("simgpu: a freed block of a pool can't be touched though its memory is kept") {
  PoolStand s(256 * kMiB);
  const CUdeviceptr block = s.take(4 * kMiB, s.stream);
  CU_OK(cuMemFreeAsync(block, s.stream));
  CU_OK(cuStreamSynchronize(s.stream));
  CU_OK(cuMemsetD8Async(block, 1, 16, s.stream));
  CHECK(cuStreamSynchronize(s.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  expect_misuse({"context faulted"});
}

TEST_CASE("simgpu: access to a pool is given by device") {
  PoolStand s;
  CUmemAccessDesc access{};
  CUmemAccess_flags flags{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = 1;
  CU_OK(cuMemPoolGetAccess(&flags, s.pool, &access.location));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CU_OK(cuMemPoolSetAccess(s.pool, &access, 1));
  CU_OK(cuMemPoolGetAccess(&flags, s.pool, &access.location));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  access.location.id = 0;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  CHECK(cuMemPoolSetAccess(s.pool, &access, 1) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemPoolDestroy(s.pool));
}

TEST_CASE("simgpu: managed memory is charged to a device while it is prefetched there") {
  TestContext context;
  const std::size_t before = free_memory();
  CUdeviceptr block{};
  CUmemLocation place{};
  int last = 0;
  CU_OK(cuMemAllocManaged(&block, 64 * kMiB, CU_MEM_ATTACH_GLOBAL));
  CHECK(free_memory() == before);
  CU_OK(cuMemRangeGetAttribute(&last, sizeof last, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, block, 64 * kMiB));
  CHECK(last == -2);
  place.type = CU_MEM_LOCATION_TYPE_DEVICE;
#if CUDA_VERSION >= 13000
  CU_OK(cuMemPrefetchAsync(block, 64 * kMiB, place, 0, nullptr));
#else
  CU_OK(cuMemPrefetchAsync(block, 64 * kMiB, place.id, nullptr));
#endif
  CU_OK(cuStreamSynchronize(nullptr));
  CHECK(before - free_memory() == 64 * kMiB);
  CU_OK(cuMemRangeGetAttribute(&last, sizeof last, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, block, 64 * kMiB));
  CHECK(last == 0);
  CU_OK(cuMemFree(block));
  CHECK(free_memory() == before);
  CHECK(cuMemRangeGetAttribute(&last, sizeof last, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, block, 1) == CUDA_ERROR_INVALID_VALUE);
}

#if CUDA_VERSION >= 13000
TEST_CASE("simgpu: a batch copies all of its parts, and not on the legacy stream") {
  TestContext context;
  CUdeviceptr block{};
  CUstream stream{};
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU_OK(cuMemAlloc(&block, 4 * kMiB));
  void* pinned = nullptr;
  CU_OK(cuMemHostAlloc(&pinned, kMiB, 0));
  auto* const words = static_cast<unsigned*>(pinned);
  std::array<CUdeviceptr, 4> to{}, from{};
  std::array<std::size_t, 4> sizes{};
  for (std::size_t i = 0; i < 4; ++i) {
    words[i] = static_cast<unsigned>(i + 7);
    to[i] = block + i * kMiB;
    from[i] = reinterpret_cast<CUdeviceptr>(words + i);
    sizes[i] = sizeof(unsigned);
  }
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  std::size_t begin = 0;
  CHECK(cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), 4, &attributes, &begin, 1, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), 4, &attributes, &begin, 1, stream));
  CU_OK(cuStreamSynchronize(stream));
  for (std::size_t i = 0; i < 4; ++i) {
    unsigned word = 0;
    CU_OK(cuMemcpyDtoH(&word, to[i], sizeof word));
    CHECK(word == i + 7);
  }
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
  CHECK(cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), 4, &attributes, &begin, 1, stream) ==
        CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemFreeHost(pinned));
  CU_OK(cuMemFree(block));
}
#endif
