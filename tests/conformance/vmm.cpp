// Chunks, reservations and mappings of device memory.
#include "tests/conformance/gate.hpp"
#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

struct Parts {  // a granule, room for four, one chunk
  std::size_t granule;
  CUdeviceptr room;
  CUmemGenericAllocationHandle handle;
};
Parts parts(std::size_t granules = 1) {
  primary();
  const CUmemAllocationProp prop = device_prop();
  const std::size_t granule = granularity(prop);
  return {granule, reserve(4 * granule), chunk(granules * granule, prop)};
}

void create_with(void (*change)(CUmemAllocationProp&), CUresult wanted) {
  primary();
  CUmemAllocationProp prop = device_prop();
  const std::size_t granule = granularity(prop);
  change(prop);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT(wanted, cuMemCreate(&handle, granule, &prop, 0));
}

const Case cases[] = {
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
    {"vmm.map_needs_offset_zero", "an offset other than 0: INVALID_VALUE", documented,
     [](int) {
       const Parts p = parts(2);
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p.room, p.granule, p.granule, p.handle, 0));
     }},
    {"vmm.map_needs_flags_zero", "flags other than 0: INVALID_VALUE", documented,
     [](int) {
       const Parts p = parts();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p.room, p.granule, 0, p.handle, 1));
     }},
    {"vmm.map_needs_alignment", "an address or size that is no multiple of the granularity: INVALID_VALUE", documented,
     [](int) {
       const Parts p = parts();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p.room + 4096, p.granule, 0, p.handle, 0));
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p.room, p.granule / 2, 0, p.handle, 0));
     }},
    {"vmm.map_needs_reservation", "a range that is not reserved: INVALID_VALUE", documented,
     [](int) {
       const Parts p = parts();
       NEED(cuMemAddressFree(p.room, 4 * p.granule));
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p.room, p.granule, 0, p.handle, 0));
     }},
    {"vmm.map_beyond_handle", "a size larger than the chunk: INVALID_VALUE", documented,
     [](int) {
       const Parts p = parts();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p.room, 2 * p.granule, 0, p.handle, 0));
     }},
    {"vmm.map_part_of_handle", "a size smaller than the chunk: INVALID_VALUE", assumed,
     [](int) {
       const Parts p = parts(2);
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p.room, p.granule, 0, p.handle, 0));
     }},
    {"vmm.map_over_mapping", "a range with a mapping: INVALID_VALUE", documented,
     [](int) {
       const Parts p = parts();
       NEED(cuMemMap(p.room, p.granule, 0, p.handle, 0));
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p.room, p.granule, 0, p.handle, 0));
     }},
    {"vmm.map_twice", "one chunk at two addresses: the same bytes", documented,
     [](int) {
       const Parts p = parts();
       map(p.room, p.granule, p.handle);
       map(p.room + 2 * p.granule, p.granule, p.handle);
       fill(p.room, 0x5a, p.granule);
       expect_that(holds(p.room + 2 * p.granule, 0x5a, p.granule), "same bytes");
     }},
    {"vmm.unmap_part", "unmapping a part of a mapping: INVALID_VALUE, and the mapping stays", documented,
     [](int) {
       const Parts p = parts(2);
       map(p.room, 2 * p.granule, p.handle);
       fill(p.room, 0x11, 2 * p.granule);
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(p.room, p.granule));
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(p.room + p.granule, p.granule));
       expect_that(holds(p.room, 0x11, 2 * p.granule), "contents there");
     }},
    {"vmm.unmap_several", "one unmap over several whole mappings works", assumed,
     [](int) {
       primary();
       const Mapping m = map_new(3);
       EXPECT(CUDA_SUCCESS, cuMemUnmap(m.address, m.size));
       EXPECT(CUDA_SUCCESS, cuMemAddressFree(m.address, m.size));
     }},
    {"vmm.unmap_nothing", "unmapping a bare reservation: INVALID_VALUE", documented,
     [](int) {
       const Parts p = parts();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(p.room, p.granule));
     }},
    {"vmm.unmap_leaves_reservation", "after unmap the range can be mapped again and freed as reserved", documented,
     [](int) {
       const Parts p = parts();
       EXPECT(CUDA_SUCCESS, cuMemMap(p.room, p.granule, 0, p.handle, 0));
       EXPECT(CUDA_SUCCESS, cuMemUnmap(p.room, p.granule));
       EXPECT(CUDA_SUCCESS, cuMemMap(p.room, p.granule, 0, p.handle, 0));
       EXPECT(CUDA_SUCCESS, cuMemUnmap(p.room, p.granule));
       EXPECT(CUDA_SUCCESS, cuMemAddressFree(p.room, 4 * p.granule));
     }},
    {"vmm.contents_survive_remap", "a chunk keeps its bytes over unmap and map at another address", documented,
     [](int) {
       const Parts p = parts();
       map(p.room, p.granule, p.handle);
       fill(p.room, 0x77, p.granule);
       NEED(cuMemUnmap(p.room, p.granule));
       map(p.room + 3 * p.granule, p.granule, p.handle);
       expect_that(holds(p.room + 3 * p.granule, 0x77, p.granule), "bytes there");
     }},
    {"vmm.memory_lives_in_mapping", "a released chunk lives while it is mapped", documented,
     [](int) {
       const Parts p = parts();
       map(p.room, p.granule, p.handle);
       fill(p.room, 0x21, p.granule);
       EXPECT(CUDA_SUCCESS, cuMemRelease(p.handle));
       expect_that(holds(p.room, 0x21, p.granule), "bytes there");
       EXPECT(CUDA_SUCCESS, cuMemUnmap(p.room, p.granule));
     }},
    {"vmm.memory_lives_in_handle", "memory is free only when mapping and handle are gone", documented,
     [](int) {
       primary();
       const CUmemAllocationProp prop = device_prop();
       const std::size_t size = 64 * granularity(prop);
       const CUmemGenericAllocationHandle handle = chunk(size, prop);
       const CUdeviceptr address = reserve(size);
       map(address, size, handle);
       const std::size_t taken = free_bytes();
       NEED(cuMemUnmap(address, size));
       expect_that(free_bytes() < taken + size, "still taken after unmap");
       NEED(cuMemRelease(handle));
       expect_that(free_bytes() >= taken + size, "free after release");
     }},
    {"vmm.retain_counts", "each Retain needs a Release of its own", documented,
     [](int) {
       const Parts p = parts();
       map(p.room, p.granule, p.handle);
       CUmemGenericAllocationHandle again = 0;
       EXPECT(CUDA_SUCCESS, cuMemRetainAllocationHandle(&again, pointer_to(p.room)));
       NEED(cuMemUnmap(p.room, p.granule));
       EXPECT(CUDA_SUCCESS, cuMemRelease(p.handle));
       EXPECT(CUDA_SUCCESS, cuMemMap(p.room, p.granule, 0, again, 0));
       EXPECT(CUDA_SUCCESS, cuMemRelease(again));
     }},
    {"vmm.retain_inside", "Retain takes any address of the mapping", documented,
     [](int) {
       const Parts p = parts();
       map(p.room, p.granule, p.handle);
       CUmemGenericAllocationHandle again = 0;
       EXPECT(CUDA_SUCCESS, cuMemRetainAllocationHandle(&again, pointer_to(p.room + p.granule / 2 + 17)));
       CUmemAllocationProp prop{};
       EXPECT(CUDA_SUCCESS, cuMemGetAllocationPropertiesFromHandle(&prop, again));
       expect_that(prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop.location.id == chosen_device, "its location");
     }},
    {"vmm.retain_reservation", "Retain of a bare reservation: INVALID_VALUE", assumed,
     [](int) {
       const Parts p = parts();
       CUmemGenericAllocationHandle again = 0;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(&again, pointer_to(p.room)));
     }},
    {"vmm.release_stale", "releasing a handle that is gone: INVALID_VALUE (undefined behaviour in the header)", assumed,
     [](int) {
       const Parts p = parts();
       EXPECT(CUDA_SUCCESS, cuMemRelease(p.handle));
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemRelease(p.handle));
     }},
    {"vmm.map_stale", "mapping a handle that is gone: INVALID_VALUE", assumed,
     [](int) {
       const Parts p = parts();
       NEED(cuMemRelease(p.handle));
       EXPECT_ONE_OF(cuMemMap(p.room, p.granule, 0, p.handle, 0), CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE);
     }},
    {"vmm.properties", "a handle's properties are those it was created with", documented,
     [](int) {
       primary();
       granularity(device_prop());
       const CUmemGenericAllocationHandle handle =
           chunk(granularity(device_prop()), device_prop(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
       CUmemAllocationProp prop{};
       EXPECT(CUDA_SUCCESS, cuMemGetAllocationPropertiesFromHandle(&prop, handle));
       expect_that(prop.type == CU_MEM_ALLOCATION_TYPE_PINNED, "type");
       expect_that(prop.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, "handle types");
       expect_that(prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop.location.id == chosen_device, "location");
     }},
    {"vmm.calls_beside_blocked_stream", "create, map, set-access and unmap of other memory do not wait for a stream", assumed,
     [](int) {
       const Parts p = parts();
       Gate& gate = make_gate();
       close_gate(gate, stream());
       const CUmemGenericAllocationHandle handle = chunk(p.granule, device_prop());
       expect_that(!gate.is_open(), "create returned before the gate opened");
       NEED(cuMemMap(p.room, p.granule, 0, handle, 0));
       expect_that(!gate.is_open(), "map did");
       const CUmemAccessDesc access = device_access();
       NEED(cuMemSetAccess(p.room, p.granule, &access, 1));
       expect_that(!gate.is_open(), "set-access did");
       NEED(cuMemUnmap(p.room, p.granule));
       expect_that(!gate.is_open(), "unmap did");
       NEED(cuMemRelease(handle));
       expect_that(!gate.is_open(), "release did");
     }},
    {"vmm.no_effect_of_free", "cuMemFree of a mapping: INVALID_VALUE", assumed,
     [](int) {
       primary();
       const Mapping m = map_new();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(m.address));
     }},
};

}  // namespace
const CaseList vmm_cases = list_of(cases);
}  // namespace vramd::conformance
