// cuMemAlloc, pinned and managed memory.
#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

constexpr Case cases[] = {
    {"memory.alloc_zero", "cuMemAlloc of 0 bytes: INVALID_VALUE", documented,
     [](int) {
       primary();
       CUdeviceptr block = 0;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&block, 0));
     }},
    {"memory.alloc_without_context", "cuMemAlloc without a context: INVALID_CONTEXT", documented,
     [](int) {
       start();
       CUdeviceptr block = 0;
       EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&block, 256));
     }},
    {"memory.alloc_before_init", "cuMemAlloc before cuInit: NOT_INITIALIZED", documented,
     [](int) {
       CUdeviceptr block = 0;
       EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&block, 256));
     }},
    {"memory.alignment", "blocks of any size are aligned to 256 bytes", documented,
     [](int) {
       primary();
       bool aligned = true;
       for (const std::size_t size : {1, 3, 100, 255, 257, 511, 513, 4097, 200000}) {
         for (int i = 0; i < 4; ++i) aligned &= device_memory(size) % 256 == 0;
       }
       expect_that(aligned, "multiples of 256");
     }},
    {"memory.blocks_are_apart", "blocks do not overlap", documented,
     [](int) {
       primary();
       CUdeviceptr blocks[8];
       for (unsigned char i = 0; i < 8; ++i) {
         blocks[i] = device_memory(1000);
         fill(blocks[i], i, 1000);
       }
       bool apart = true;
       for (unsigned char i = 0; i < 8; ++i) apart &= holds(blocks[i], i, 1000);
       expect_that(apart, "each keeps its bytes");
     }},
    {"memory.double_free", "freeing twice: INVALID_VALUE", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(4 * kMiB);
       EXPECT(CUDA_SUCCESS, cuMemFree(block));
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(block));
     }},
    {"memory.interior_free", "freeing inside a block: INVALID_VALUE, the block stays", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(4 * kMiB);
       fill(block, 0x13, 4 * kMiB);
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(block + 256));
       expect_that(holds(block, 0x13, 4 * kMiB), "bytes there");
       EXPECT(CUDA_SUCCESS, cuMemFree(block));
     }},
    {"memory.foreign_free", "freeing host memory: INVALID_VALUE", documented,
     [](int) {
       primary();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(address_of(pageable_memory(4096))));
       EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
     }},
    {"memory.free_null", "cuMemFree(0) succeeds", assumed,
     [](int) {
       primary();
       EXPECT(CUDA_SUCCESS, cuMemFree(0));
     }},
    {"memory.out_of_memory", "too much: OUT_OF_MEMORY, not sticky", documented,
     [](int) {
       primary();
       std::size_t total = 0;
       NEED(cuDeviceTotalMem(&total, chosen_device));
       CUdeviceptr block = 0;
       EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&block, 2 * total));
       EXPECT(CUDA_SUCCESS, cuMemAlloc(&block, kMiB));
       EXPECT(CUDA_SUCCESS, cuMemsetD8(block, 1, kMiB));
       EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
     }},
    {"memory.info_drops", "cuMemGetInfo drops by an allocation and rises at its free", documented,
     [](int) {
       primary();
       device_memory(256);
       const std::size_t before = free_bytes();
       const CUdeviceptr block = device_memory(128 * kMiB);
       const std::size_t during = free_bytes();
       NEED(cuMemFree(block));
       const std::size_t after = free_bytes();
       expect_that(before >= during + 128 * kMiB, "dropped by 128 MiB or more");
       expect_that(after >= during + 128 * kMiB, "rose by 128 MiB or more");
     }},
    {"memory.address_range", "cuMemGetAddressRange is the whole allocation, from any address in it", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(3 * kMiB);
       CUdeviceptr base = 0;
       std::size_t size = 0;
       EXPECT(CUDA_SUCCESS, cuMemGetAddressRange(&base, &size, block + kMiB + 5));
       observe("size %zu bytes", size);
       expect_that(base == block && size == 3 * kMiB, "base and size");
     }},
    {"memory.address_range_unknown", "cuMemGetAddressRange of an unknown address: NOT_FOUND", documented,
     [](int) {
       primary();
       CUdeviceptr base = 0;
       std::size_t size = 0;
       EXPECT(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, address_of(pageable_memory(4096))));
     }},
    {"memory.address_range_mapping", "the address range of a mapping is the mapping", assumed,
     [](int) {
       primary();
       const Mapping m = map_new(2);
       CUdeviceptr base = 0;
       std::size_t size = 0;
       EXPECT(CUDA_SUCCESS, cuMemGetAddressRange(&base, &size, m.address + m.size / 2 + 9));
       expect_that(base == m.address + m.size / 2 && size == m.size / 2, "of one mapping, not of its neighbour");
     }},
    {"memory.retain_refused", "cuMemRetainAllocationHandle of cuMemAlloc memory: INVALID_VALUE", documented,
     [](int) {
       primary();
       granularity(device_prop());
       CUmemGenericAllocationHandle handle = 0;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(&handle, pointer_to(device_memory(4 * kMiB))));
     }},
    {"memory.pitch", "cuMemAllocPitch: a pitch that holds the row and keeps rows aligned", documented,
     [](int) {
       primary();
       CUdeviceptr block = 0;
       std::size_t pitch = 0;
       EXPECT(CUDA_SUCCESS, cuMemAllocPitch(&block, &pitch, 1000, 7, 4));
       observe("pitch %zu bytes", pitch);
       expect_that(pitch >= 1000 && pitch % 16 == 0, "as said");
       EXPECT(CUDA_SUCCESS, cuMemsetD8(block, 1, pitch * 7));
       NEED(cuCtxSynchronize());
     }},
    {"memory.advise_device", "cuMemAdvise and cuMemPrefetchAsync of device memory: INVALID_VALUE", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(2 * kMiB);
       CUmemLocation location{};
       location.type = CU_MEM_LOCATION_TYPE_DEVICE;
       location.id = chosen_device;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAdvise_v2(block, 2 * kMiB, CU_MEM_ADVISE_SET_READ_MOSTLY, location));
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync_v2(block, 2 * kMiB, location, 0, nullptr));
       EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
     }},
    {"memory.host_register_device", "cuMemHostRegister of device memory is refused", assumed,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(2 * kMiB);
       EXPECT_ONE_OF(cuMemHostRegister(pointer_to(block), 2 * kMiB, 0), CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_PERMITTED,
                     CUDA_ERROR_OPERATING_SYSTEM);
     }},
    {"memory.host_register_overlap", "registering registered memory: HOST_MEMORY_ALREADY_REGISTERED", documented,
     [](int) {
       primary();
       char* const bytes = pageable_memory(64 * kKiB);
       EXPECT(CUDA_SUCCESS, cuMemHostRegister(bytes, 64 * kKiB, 0));
       EXPECT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(bytes + 16 * kKiB, 64 * kKiB, 0));
       EXPECT(CUDA_SUCCESS, cuMemHostUnregister(bytes));
       EXPECT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(bytes));
     }},
    {"memory.host_device_pointer", "pinned memory has the same address for the device", documented,
     [](int) {
       primary();
       char* const bytes = pinned_memory(4096);
       CUdeviceptr address = 0;
       EXPECT(CUDA_SUCCESS, cuMemHostGetDevicePointer(&address, bytes, 0));
       expect_that(address == address_of(bytes), "the same");
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&address, pageable_memory(4096), 0));
     }},
    {"memory.host_free_unknown", "cuMemFreeHost of memory that was not allocated: INVALID_VALUE", assumed,
     [](int) {
       primary();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pageable_memory(4096)));
     }},
    {"memory.managed", "managed memory: the host writes, the device copies, attributes say so", documented,
     [](int) {
       primary();
       if (!device_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) not_available("no managed memory");
       CUdeviceptr block = 0;
       EXPECT(CUDA_SUCCESS, cuMemAllocManaged(&block, kMiB, CU_MEM_ATTACH_GLOBAL));
       __builtin_memset(pointer_to(block), 0x23, kMiB);
       expect_that(holds(block, 0x23, kMiB), "bytes");
       unsigned managed = 0;
       EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, block));
       expect_that(managed == 1, "managed");
       EXPECT(CUDA_SUCCESS, cuMemFree(block));
     }},
    {"memory.managed_flags", "cuMemAllocManaged without flags: INVALID_VALUE", documented,
     [](int) {
       primary();
       if (!device_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) not_available("no managed memory");
       CUdeviceptr block = 0;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&block, kMiB, 0));
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&block, 0, CU_MEM_ATTACH_GLOBAL));
     }},
};

}  // namespace
constinit const CaseList memory_cases = list_of(cases);
}  // namespace vramd::conformance
