// Mappings of device memory, and how long memory lives.
#include "tests/conformance/gate.hpp"
#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

constexpr Case cases[] = {
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
constinit const CaseList vmm_mapping_cases = list_of(cases);
}  // namespace vramd::conformance
