// Chunks and reservations of device memory.
#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

void create_with(void (*change)(CUmemAllocationProp&), CUresult wanted) {
  primary();
  CUmemAllocationProp prop = device_prop();
  const std::size_t granule = granularity(prop);
  change(prop);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT(wanted, cuMemCreate(&handle, granule, &prop, 0));
}

constexpr Case cases[] = {
    {"vmm.granularity_divides_2mib", "the minimum granularity is a power of two, at most 2 MiB", assumed,
     [](int) {
       primary();
       const std::size_t granule = granularity(device_prop());
       observe("%zu bytes", granule);
       expect_that(granule != 0 && (granule & (granule - 1)) == 0 && granule <= 2 * kMiB, "as said");
     }},
    {"vmm.granularity_recommended", "the recommended granularity is a multiple of the minimum", documented,
     [](int) {
       primary();
       const CUmemAllocationProp prop = device_prop();
       const std::size_t least = granularity(prop);
       std::size_t recommended = 0;
       NEED(cuMemGetAllocationGranularity(&recommended, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
       observe("%zu bytes", recommended);
       expect_that(recommended >= least && recommended % least == 0, "a multiple");
     }},
    {"vmm.create_without_context", "cuMemCreate on a device works with cuInit alone", documented,
     [](int) {
       start();
       const CUmemAllocationProp prop = device_prop();
       const std::size_t granule = granularity(prop);
       CUmemGenericAllocationHandle handle = 0;
       EXPECT(CUDA_SUCCESS, cuMemCreate(&handle, granule, &prop, 0));
     }},
    {"vmm.map_without_context", "reserve, map, set-access and unmap work with cuInit alone", assumed,
     [](int) {
       start();
       const CUmemAllocationProp prop = device_prop();
       const std::size_t granule = granularity(prop);
       const CUmemGenericAllocationHandle handle = chunk(granule, prop);
       CUdeviceptr address = 0;
       const CUmemAccessDesc access = device_access();
       EXPECT(CUDA_SUCCESS, cuMemAddressReserve(&address, granule, 0, 0, 0));
       EXPECT(CUDA_SUCCESS, cuMemMap(address, granule, 0, handle, 0));
       EXPECT(CUDA_SUCCESS, cuMemSetAccess(address, granule, &access, 1));
       EXPECT(CUDA_SUCCESS, cuMemUnmap(address, granule));
     }},
    {"vmm.create_size_zero", "size 0: INVALID_VALUE", documented,
     [](int) {
       primary();
       const CUmemAllocationProp prop = device_prop();
       granularity(prop);
       CUmemGenericAllocationHandle handle = 0;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 0, &prop, 0));
     }},
    {"vmm.create_size_not_granular", "a size that is no multiple of the granularity: INVALID_VALUE", documented,
     [](int) {
       primary();
       const CUmemAllocationProp prop = device_prop();
       const std::size_t granule = granularity(prop);
       CUmemGenericAllocationHandle handle = 0;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, granule + granule / 2, &prop, 0));
     }},
    {"vmm.create_flags", "flags other than 0: INVALID_VALUE", documented,
     [](int) {
       primary();
       const CUmemAllocationProp prop = device_prop();
       const std::size_t granule = granularity(prop);
       CUmemGenericAllocationHandle handle = 0;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, granule, &prop, 1));
     }},
    {"vmm.create_unknown_device", "a location that is no device: INVALID_DEVICE or INVALID_VALUE", documented,
     [](int) {
       primary();
       CUmemAllocationProp prop = device_prop();
       const std::size_t granule = granularity(prop);
       prop.location.id = 1000;
       CUmemGenericAllocationHandle handle = 0;
       EXPECT_ONE_OF(cuMemCreate(&handle, granule, &prop, 0), CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_INVALID_VALUE);
     }},
    {"vmm.create_location_none", "no location: INVALID_VALUE", assumed,
     [](int) {
       create_with([](CUmemAllocationProp& prop) { prop.location.type = CU_MEM_LOCATION_TYPE_INVALID; },
                   CUDA_ERROR_INVALID_VALUE);
     }},
    {"vmm.create_type_invalid", "a type other than PINNED: INVALID_VALUE", assumed,
     [](int) {
       create_with([](CUmemAllocationProp& prop) { prop.type = CU_MEM_ALLOCATION_TYPE_INVALID; }, CUDA_ERROR_INVALID_VALUE);
     }},
    {"vmm.create_out_of_memory", "more than the device has: OUT_OF_MEMORY, and the next creation works", documented,
     [](int) {
       primary();
       const CUmemAllocationProp prop = device_prop();
       const std::size_t granule = granularity(prop);
       std::size_t total = 0;
       NEED(cuDeviceTotalMem(&total, chosen_device));
       CUmemGenericAllocationHandle handle = 0;
       EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&handle, (2 * total / granule + 1) * granule, &prop, 0));
       EXPECT(CUDA_SUCCESS, cuMemCreate(&handle, granule, &prop, 0));
     }},
    {"vmm.create_takes_memory", "cuMemGetInfo drops by a chunk's size at its creation", assumed,
     [](int) {
       primary();
       const CUmemAllocationProp prop = device_prop();
       granularity(prop);
       const std::size_t before = free_bytes();
       chunk(64 * kMiB, prop);
       const std::size_t after = free_bytes();
       expect_that(before >= after + 64 * kMiB, "dropped by 64 MiB or more");
     }},
    {"vmm.reserve_size_not_granular", "reserving a size that is no multiple of the granularity: INVALID_VALUE", documented,
     [](int) {
       parts();
       CUdeviceptr address = 0;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&address, 4096 + 1, 0, 0, 0));
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&address, 0, 0, 0, 0));
     }},
    {"vmm.reserve_alignment", "a reservation has the alignment asked for", documented,
     [](int) {
       parts();
       CUdeviceptr address = 0;
       EXPECT(CUDA_SUCCESS, cuMemAddressReserve(&address, 64 * kMiB, 64 * kMiB, 0, 0));
       expect_that(address != 0 && address % (64 * kMiB) == 0, "aligned to 64 MiB");
     }},
    {"vmm.reserve_alignment_not_power_of_two", "an alignment that is no power of two: INVALID_VALUE", documented,
     [](int) {
       const Parts p = parts();
       CUdeviceptr address = 0;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&address, p.granule, 3 * p.granule, 0, 0));
     }},
    {"vmm.reserve_hint", "a free address asked for is given", assumed,
     [](int) {
       const Parts p = parts();
       NEED(cuMemAddressFree(p.room, 4 * p.granule));
       CUdeviceptr address = 0;
       EXPECT(CUDA_SUCCESS, cuMemAddressReserve(&address, 4 * p.granule, 0, p.room, 0));
       expect_that(address == p.room, "the address asked for");
     }},
    {"vmm.reserve_takes_no_memory", "a reservation larger than the device succeeds and takes nothing", documented,
     [](int) {
       const Parts p = parts();
       const std::size_t before = free_bytes();
       CUdeviceptr address = 0;
       EXPECT(CUDA_SUCCESS, cuMemAddressReserve(&address, p.granule * (std::size_t{1} << 17), 0, 0, 0));
       expect_that(free_bytes() == before, "free memory unchanged");
     }},
    {"vmm.address_free_exactly", "AddressFree takes exactly what was reserved: else INVALID_VALUE", documented,
     [](int) {
       const Parts p = parts();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p.room, 2 * p.granule));
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p.room + p.granule, 3 * p.granule));
       EXPECT(CUDA_SUCCESS, cuMemAddressFree(p.room, 4 * p.granule));
     }},
    {"vmm.address_free_with_mapping", "AddressFree with a mapping inside is refused", assumed,
     [](int) {
       const Parts p = parts();
       NEED(cuMemMap(p.room, p.granule, 0, p.handle, 0));
       EXPECT_ONE_OF(cuMemAddressFree(p.room, 4 * p.granule), CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_ILLEGAL_STATE);
     }},
};

}  // namespace
constinit const CaseList vmm_cases = list_of(cases);
}  // namespace vramd::conformance
