// Chunks in host memory: HOST_NUMA and what is refused.
#include <cstring>

#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

CUresult create_at(CUmemLocationType type, int id, int handle_types) {
  primary();
  host_chunk(granularity(host_prop()));  // the feature is there
  CUmemAllocationProp prop = host_prop(handle_types);
  const std::size_t granule = granularity(prop);
  prop.location.type = type;
  prop.location.id = id;
  CUmemGenericAllocationHandle handle = 0;
  return cuMemCreate(&handle, granule, &prop, 0);
}

constexpr int kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

constexpr Case cases[] = {
    {"host_vmm.create_without_context", "cuMemCreate(HOST_NUMA) with cuInit alone: a context is needed", assumed,
     [](int) {
       start();
       const CUmemAllocationProp prop = host_prop();
       const std::size_t granule = granularity(prop);
       CUmemGenericAllocationHandle handle = 0;
       const CUresult result = cuMemCreate(&handle, granule, &prop, 0);
       if (result == CUDA_ERROR_NOT_SUPPORTED) not_available("no chunks in host memory");
       expect_result(result, {CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_NOT_INITIALIZED}, "cuMemCreate");
     }},
    {"host_vmm.granularity", "HOST_NUMA has a granularity of 2 MiB", assumed,
     [](int) {
       primary();
       const std::size_t granule = granularity(host_prop());
       observe("%zu bytes", granule);
       expect_that(granule == 2 * kMiB, "2 MiB");
     }},
    {"host_vmm.numa_attribute", "the attribute says that HOST_NUMA chunks work, where they do", documented,
     [](int) {
       primary();
       host_chunk(granularity(host_prop()));
       int value = 0;
       const auto attribute = static_cast<CUdevice_attribute>(141);  // HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
       int version = 0;
       NEED(cuDriverGetVersion(&version));
       if (version < 12090) not_available("the attribute came with 12.9");
       EXPECT(CUDA_SUCCESS, cuDeviceGetAttribute(&value, attribute, chosen_device));
       expect_that(value == 1, "1");
     }},
    {"host_vmm.host_touches", "the host reads and writes through a mapping with host access", documented,
     [](int) {
       primary();
       const Mapping m = map_new_host();
       std::memset(pointer_to(m.address), 0x19, m.size);
       expect_that(all_bytes(pointer_to(m.address), 0x19, m.size), "bytes");
     }},
    {"host_vmm.device_copies", "what the host wrote is copied to the device and back", documented,
     [](int) {
       primary();
       const Mapping m = map_new_host();
       const CUdeviceptr device = device_memory(m.size);
       std::memset(pointer_to(m.address), 0x1a, m.size);
       EXPECT(CUDA_SUCCESS, cuMemcpy(device, m.address, m.size));
       NEED(cuCtxSynchronize());
       std::memset(pointer_to(m.address), 0, m.size);
       EXPECT(CUDA_SUCCESS, cuMemcpy(m.address, device, m.size));
       expect_that(all_bytes(pointer_to(m.address), 0x1a, m.size), "bytes");
     }},
    {"host_vmm.takes_no_device_memory", "a host chunk takes no device memory", documented,
     [](int) {
       primary();
       host_chunk(granularity(host_prop()));
       const std::size_t before = free_bytes();
       host_chunk(32 * kMiB);
       expect_that(free_bytes() + 8 * kMiB > before, "free memory as before");
     }},
    {"host_vmm.replaces_device_chunk", "a host chunk takes a device chunk's place at the same address", documented,
     [](int) {
       primary();
       const std::size_t device_granule = granularity(device_prop()), host_granule = granularity(host_prop());
       const std::size_t size = device_granule > host_granule ? device_granule : host_granule;
       const CUdeviceptr address = reserve(size), scratch = reserve(size);
       const CUmemGenericAllocationHandle device = chunk(size, device_prop()), host = host_chunk(size);
       map(address, size, device);
       fill(address, 0x61, size);
       map_host(scratch, size, host);
       EXPECT(CUDA_SUCCESS, cuMemcpy(scratch, address, size));
       EXPECT(CUDA_SUCCESS, cuMemUnmap(address, size));
       map_host(address, size, host);
       expect_that(holds(address, 0x61, size), "bytes");
       expect_that(all_bytes(pointer_to(address), 0x61, size), "bytes for the host");
     }},
    {"host_vmm.memory_type", "MEMORY_TYPE of a host-backed block is HOST", assumed,
     [](int) {
       primary();
       const Mapping m = map_new_host();
       unsigned type = 0;
       EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, m.address));
       expect_that(type == CU_MEMORYTYPE_HOST, "HOST");
     }},
    {"host_vmm.address_range", "the address range of a host-backed block is its mapping", assumed,
     [](int) {
       primary();
       const Mapping m = map_new_host(2);
       CUdeviceptr base = 0;
       std::size_t size = 0;
       EXPECT(CUDA_SUCCESS, cuMemGetAddressRange(&base, &size, m.address + 100));
       expect_that(base == m.address && size == m.size, "base and size");
     }},
    {"host_vmm.export_fd", "a HOST_NUMA chunk can be exported and imported by descriptor", documented,
     [](int) {
       primary();
       const std::size_t granule = granularity(host_prop(kFd));
       const CUmemGenericAllocationHandle handle = host_chunk(granule, kFd);
       int fd = -1;
       EXPECT(CUDA_SUCCESS, cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
       CUmemGenericAllocationHandle again = 0;
       EXPECT(CUDA_SUCCESS, cuMemImportFromShareableHandle(&again, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
       const CUdeviceptr one = reserve(granule), two = reserve(granule);
       map_host(one, granule, handle);
       map_host(two, granule, again);
       std::memset(pointer_to(one), 0x2b, granule);
       expect_that(all_bytes(pointer_to(two), 0x2b, granule), "same memory");
     }},
    {"host_vmm.access_id_ignored", "the id of a HOST_NUMA access descriptor is ignored", documented,
     [](int) {
       primary();
       const std::size_t granule = granularity(host_prop());
       const CUdeviceptr address = reserve(granule);
       NEED(cuMemMap(address, granule, 0, host_chunk(granule), 0));
       CUmemAccessDesc access = host_access();
       access.location.id = 77;
       EXPECT(CUDA_SUCCESS, cuMemSetAccess(address, granule, &access, 1));
       std::memset(pointer_to(address), 1, granule);
       expect_that(all_bytes(pointer_to(address), 1, granule), "usable by the host");
     }},
    {"host_vmm.host_with_handle_type", "location HOST with a handle type: INVALID_VALUE", documented,
     [](int) { expect_result(create_at(CU_MEM_LOCATION_TYPE_HOST, 0, kFd), {CUDA_ERROR_INVALID_VALUE}, "cuMemCreate"); }},
    {"host_vmm.numa_current", "location HOST_NUMA_CURRENT: INVALID_VALUE", documented,
     [](int) {
       expect_result(create_at(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0, 0), {CUDA_ERROR_INVALID_VALUE}, "cuMemCreate");
     }},
    {"host_vmm.numa_minus_one", "node -1: INVALID_VALUE", documented,
     [](int) { expect_result(create_at(CU_MEM_LOCATION_TYPE_HOST_NUMA, -1, 0), {CUDA_ERROR_INVALID_VALUE}, "cuMemCreate"); }},
    {"host_vmm.numa_unknown", "a node that does not exist: INVALID_VALUE", documented,
     [](int) { expect_result(create_at(CU_MEM_LOCATION_TYPE_HOST_NUMA, 1000, 0), {CUDA_ERROR_INVALID_VALUE}, "cuMemCreate"); }},
    {"host_vmm.set_access_over_many", "one SetAccess with two descriptors over many host chunks", documented,
     [](int) {
       primary();
       const std::size_t granule = granularity(host_prop());
       const CUdeviceptr address = reserve(8 * granule);
       for (std::size_t i = 0; i < 8; ++i) NEED(cuMemMap(address + i * granule, granule, 0, host_chunk(granule), 0));
       const CUmemAccessDesc access[] = {device_access(), host_access()};
       EXPECT(CUDA_SUCCESS, cuMemSetAccess(address, 8 * granule, access, 2));
       std::memset(pointer_to(address), 0x37, 8 * granule);
       expect_that(holds(address, 0x37, 8 * granule), "bytes");
     }},
};

}  // namespace
constinit const CaseList host_vmm_cases = list_of(cases);
}  // namespace vramd::conformance
