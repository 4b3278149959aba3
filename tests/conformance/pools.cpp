// The stream-ordered allocator.
#include "tests/conformance/gate.hpp"
#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

CUmemoryPool default_pool() {
  primary();
  if (!device_attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) not_available("no pools");
  CUmemoryPool pool = nullptr;
  NEED(cuDeviceGetDefaultMemPool(&pool, chosen_device));
  return pool;
}

CUmemoryPool own_pool() {
  default_pool();
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  props.location.id = chosen_device;
  CUmemoryPool pool = nullptr;
  NEED(cuMemPoolCreate(&pool, &props));
  return pool;
}

cuuint64_t bytes_of(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = 0;
  NEED(cuMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

CUdeviceptr async_memory(std::size_t size, CUstream s) {
  CUdeviceptr block = 0;
  NEED(cuMemAllocAsync(&block, size, s));
  return block;
}

constexpr Case cases[] = {
    {"pools.order", "memory is usable in stream order from its allocation to its free", documented,
     [](int) {
       default_pool();
       const CUstream s = stream();
       const CUdeviceptr keep = device_memory(kMiB);
       const CUdeviceptr block = async_memory(kMiB, s);
       NEED(cuMemsetD8Async(block, 0x27, kMiB, s));
       NEED(cuMemcpyDtoDAsync(keep, block, kMiB, s));
       EXPECT(CUDA_SUCCESS, cuMemFreeAsync(block, s));
       NEED(cuStreamSynchronize(s));
       expect_that(holds(keep, 0x27, kMiB), "bytes");
     }},
    {"pools.calls_do_not_wait", "allocating and freeing behind a stream that waits return at once", assumed,
     [](int) {
       default_pool();
       const CUstream s = stream();
       NEED(cuMemFreeAsync(async_memory(kMiB, s), s));
       NEED(cuStreamSynchronize(s));
       Gate& gate = make_gate();
       close_gate(gate, s);
       CUdeviceptr block = 0;
       EXPECT(CUDA_SUCCESS, cuMemAllocAsync(&block, kMiB, s));
       EXPECT(CUDA_SUCCESS, cuMemFreeAsync(block, s));
       expect_that(!gate.is_open(), "before the gate opened");
     }},
    {"pools.reuse_in_stream", "memory freed in a stream is given out again in it", assumed,
     [](int) {
       default_pool();
       const CUstream s = stream();
       const CUdeviceptr one = async_memory(4 * kMiB, s);
       NEED(cuMemFreeAsync(one, s));
       expect_that(async_memory(4 * kMiB, s) == one, "the same address");
     }},
    {"pools.alloc_zero", "cuMemAllocAsync of 0 bytes: INVALID_VALUE", documented,
     [](int) {
       default_pool();
       CUdeviceptr block = 0;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocAsync(&block, 0, nullptr));
     }},
    {"pools.out_of_memory", "too much: OUT_OF_MEMORY, not sticky", documented,
     [](int) {
       default_pool();
       std::size_t total = 0;
       NEED(cuDeviceTotalMem(&total, chosen_device));
       CUdeviceptr block = 0;
       EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&block, 2 * total, nullptr));
       EXPECT(CUDA_SUCCESS, cuMemAllocAsync(&block, kMiB, nullptr));
       EXPECT(CUDA_SUCCESS, cuStreamSynchronize(nullptr));
     }},
    {"pools.default_is_current", "the default pool is the device's current one", documented,
     [](int) {
       const CUmemoryPool pool = default_pool();
       CUmemoryPool current = nullptr;
       EXPECT(CUDA_SUCCESS, cuDeviceGetMemPool(&current, chosen_device));
       expect_that(current == pool, "the same handle");
     }},
    {"pools.switches", "the reuse switches are on at first and can be changed", documented,
     [](int) {
       const CUmemoryPool pool = default_pool();
       for (const CUmemPool_attribute attribute :
            {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
             CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES}) {
         int value = -1, off = 0;
         NEED(cuMemPoolGetAttribute(pool, attribute, &value));
         expect_that(value == 1, "on");
         EXPECT(CUDA_SUCCESS, cuMemPoolSetAttribute(pool, attribute, &off));
         NEED(cuMemPoolGetAttribute(pool, attribute, &value));
         expect_that(value == 0, "off");
       }
     }},
    {"pools.release_threshold", "the release threshold is 0 at first and can be changed", documented,
     [](int) {
       const CUmemoryPool pool = default_pool();
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 0, "0");
       cuuint64_t threshold = 77 * kMiB;
       EXPECT(CUDA_SUCCESS, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == threshold, "as set");
     }},
    {"pools.used", "used memory follows allocation and free, its high mark stays", documented,
     [](int) {
       const CUmemoryPool pool = default_pool();
       const CUstream s = stream();
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0, "0 at first");
       const CUdeviceptr block = async_memory(8 * kMiB, s);
       NEED(cuStreamSynchronize(s));
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 8 * kMiB, "8 MiB or more");
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 8 * kMiB, "reserved as well");
       NEED(cuMemFreeAsync(block, s));
       NEED(cuStreamSynchronize(s));
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0, "0 after the free");
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 8 * kMiB, "the mark");
     }},
    {"pools.high_reset", "writing 0 resets the high mark, writing anything else: INVALID_VALUE", documented,
     [](int) {
       const CUmemoryPool pool = default_pool();
       const CUstream s = stream();
       NEED(cuMemFreeAsync(async_memory(8 * kMiB, s), s));
       NEED(cuStreamSynchronize(s));
       cuuint64_t zero = 0, one = 1;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one));
       EXPECT(CUDA_SUCCESS, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0, "0");
     }},
    {"pools.used_is_read_only", "setting used memory: INVALID_VALUE", documented,
     [](int) {
       const CUmemoryPool pool = default_pool();
       cuuint64_t zero = 0;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero));
     }},
    {"pools.threshold_keeps", "below the release threshold freed memory stays reserved over a synchronisation", documented,
     [](int) {
       const CUmemoryPool pool = default_pool();
       cuuint64_t threshold = ~cuuint64_t{0};
       NEED(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
       const CUstream s = stream();
       NEED(cuMemFreeAsync(async_memory(64 * kMiB, s), s));
       NEED(cuStreamSynchronize(s));
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 64 * kMiB, "reserved");
       EXPECT(CUDA_SUCCESS, cuMemPoolTrimTo(pool, 0));
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0, "nothing after TrimTo(0)");
     }},
    {"pools.threshold_zero_releases", "with threshold 0 a synchronisation gives freed memory back", documented,
     [](int) {
       const CUmemoryPool pool = default_pool();
       const CUstream s = stream();
       NEED(cuMemFreeAsync(async_memory(64 * kMiB, s), s));
       NEED(cuStreamSynchronize(s));
       NEED(cuCtxSynchronize());
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) < 64 * kMiB, "given back");
     }},
    {"pools.trim_keeps_used", "TrimTo does not take what is in use", documented,
     [](int) {
       const CUmemoryPool pool = default_pool();
       const CUstream s = stream();
       const CUdeviceptr block = async_memory(8 * kMiB, s);
       NEED(cuMemsetD8Async(block, 0x3e, 8 * kMiB, s));
       NEED(cuStreamSynchronize(s));
       EXPECT(CUDA_SUCCESS, cuMemPoolTrimTo(pool, 0));
       expect_that(holds(block, 0x3e, 8 * kMiB), "bytes there");
     }},
    {"pools.free_async_of_alloc", "cuMemFreeAsync takes cuMemAlloc memory", documented,
     [](int) {
       default_pool();
       const CUstream s = stream();
       const CUdeviceptr block = device_memory(4 * kMiB);
       EXPECT(CUDA_SUCCESS, cuMemFreeAsync(block, s));
       NEED(cuStreamSynchronize(s));
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(block));
     }},
    {"pools.free_of_async", "cuMemFree takes stream-ordered memory", documented,
     [](int) {
       const CUmemoryPool pool = default_pool();
       const CUstream s = stream();
       const CUdeviceptr block = async_memory(4 * kMiB, s);
       NEED(cuStreamSynchronize(s));
       EXPECT(CUDA_SUCCESS, cuMemFree(block));
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0, "nothing used");
     }},
    {"pools.double_free", "freeing twice in a stream: INVALID_VALUE", documented,
     [](int) {
       default_pool();
       const CUstream s = stream();
       const CUdeviceptr block = async_memory(4 * kMiB, s);
       EXPECT(CUDA_SUCCESS, cuMemFreeAsync(block, s));
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(block, s));
     }},
    {"pools.free_in_other_stream", "memory may be freed in another stream, ordered by an event", documented,
     [](int) {
       const CUmemoryPool pool = default_pool();
       const CUstream one = stream(), two = stream();
       const CUevent e = event();
       const CUdeviceptr block = async_memory(4 * kMiB, one);
       NEED(cuEventRecord(e, one));
       NEED(cuStreamWaitEvent(two, e, 0));
       EXPECT(CUDA_SUCCESS, cuMemFreeAsync(block, two));
       NEED(cuCtxSynchronize());
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0, "nothing used");
     }},
    {"pools.own", "a pool of one's own: allocations say so and count there only", documented,
     [](int) {
       const CUmemoryPool pool = own_pool();
       const CUstream s = stream();
       CUdeviceptr block = 0;
       EXPECT(CUDA_SUCCESS, cuMemAllocFromPoolAsync(&block, 4 * kMiB, pool, s));
       NEED(cuStreamSynchronize(s));
       CUmemoryPool of = nullptr;
       EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block));
       expect_that(of == pool, "its handle");
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 4 * kMiB, "counted there");
       expect_that(bytes_of(default_pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0, "not in the default pool");
       EXPECT(CUDA_SUCCESS, cuMemFreeAsync(block, s));
       NEED(cuStreamSynchronize(s));
       EXPECT(CUDA_SUCCESS, cuMemPoolDestroy(pool));
     }},
    {"pools.destroy_current", "destroying the current pool makes the default one current", documented,
     [](int) {
       const CUmemoryPool pool = own_pool(), standard = default_pool();
       CUmemoryPool current = nullptr;
       EXPECT(CUDA_SUCCESS, cuDeviceSetMemPool(chosen_device, pool));
       NEED(cuDeviceGetMemPool(&current, chosen_device));
       expect_that(current == pool, "set");
       EXPECT(CUDA_SUCCESS, cuMemPoolDestroy(pool));
       NEED(cuDeviceGetMemPool(&current, chosen_device));
       expect_that(current == standard, "the default one again");
     }},
    {"pools.destroy_default", "the default pool cannot be destroyed", documented,
     [](int) {
       EXPECT_ONE_OF(cuMemPoolDestroy(default_pool()), CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_PERMITTED,
                     CUDA_ERROR_NOT_SUPPORTED);
     }},
    {"pools.destroy_with_blocks", "blocks live on when their pool is destroyed", documented,
     [](int) {
       const CUmemoryPool pool = own_pool();
       const CUstream s = stream();
       CUdeviceptr block = 0;
       NEED(cuMemAllocFromPoolAsync(&block, kMiB, pool, s));
       EXPECT(CUDA_SUCCESS, cuMemPoolDestroy(pool));
       NEED(cuMemsetD8Async(block, 0x18, kMiB, s));
       NEED(cuStreamSynchronize(s));
       expect_that(holds(block, 0x18, kMiB), "usable");
       EXPECT(CUDA_SUCCESS, cuMemFreeAsync(block, s));
     }},
    {"pools.survive_reset", "cuDevicePrimaryCtxReset leaves stream-ordered memory alone", assumed,
     [](int) {
       const CUmemoryPool pool = default_pool();
       const CUstream s = stream();
       async_memory(4 * kMiB, s);
       NEED(cuStreamSynchronize(s));
       NEED(cuDevicePrimaryCtxReset(chosen_device));
       primary();
       expect_that(bytes_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 4 * kMiB, "still used");
     }},
    {"pools.export_default", "the default pool cannot be exported", documented,
     [](int) {
       int fd = -1;
       EXPECT_ONE_OF(cuMemPoolExportToShareableHandle(&fd, default_pool(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                     CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_PERMITTED);
     }},
};

}  // namespace
constinit const CaseList pool_cases = list_of(cases);
}  // namespace vramd::conformance
