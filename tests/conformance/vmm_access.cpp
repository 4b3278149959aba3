// Rights on mappings, and chunks that leave the process as file descriptors.
#include <fcntl.h>
#include <unistd.h>

#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

unsigned long long rights(CUdeviceptr address, CUmemLocation location) {
  unsigned long long flags = 99;
  NEED(cuMemGetAccess(&flags, &location, address));
  return flags;
}

constexpr int kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

int exported(CUmemGenericAllocationHandle handle) {
  int fd = -1;
  NEED(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  return fd;
}

void* as_shareable(int fd) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)); }

CUmemGenericAllocationHandle imported(int fd) {
  CUmemGenericAllocationHandle handle = 0;
  NEED(cuMemImportFromShareableHandle(&handle, as_shareable(fd), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  return handle;
}

constexpr Case cases[] = {
    {"access.none_after_map", "a new mapping has no access", documented,
     [](int) {
       primary();
       const std::size_t granule = granularity(device_prop());
       const CUdeviceptr address = reserve(granule);
       NEED(cuMemMap(address, granule, 0, chunk(granule, device_prop()), 0));
       expect_that(rights(address, device_access().location) == CU_MEM_ACCESS_FLAGS_PROT_NONE, "none");
     }},
    {"access.none_after_remap", "mapping again forgets the old access", documented,
     [](int) {
       primary();
       const Mapping m = map_new();
       NEED(cuMemUnmap(m.address, m.size));
       NEED(cuMemMap(m.address, m.size, 0, m.handle, 0));
       expect_that(rights(m.address, device_access().location) == CU_MEM_ACCESS_FLAGS_PROT_NONE, "none");
     }},
    {"access.get_says_what_was_set", "GetAccess gives back what SetAccess set", documented,
     [](int) {
       primary();
       const Mapping m = map_new();
       expect_that(rights(m.address, device_access().location) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "read and write");
       const CUmemAccessDesc none = device_access(CU_MEM_ACCESS_FLAGS_PROT_NONE);
       EXPECT(CUDA_SUCCESS, cuMemSetAccess(m.address, m.size, &none, 1));
       expect_that(rights(m.address, device_access().location) == CU_MEM_ACCESS_FLAGS_PROT_NONE, "none");
     }},
    {"access.read_only", "read-only access can be set", assumed,
     [](int) {
       primary();
       const Mapping m = map_new();
       const CUmemAccessDesc read = device_access(CU_MEM_ACCESS_FLAGS_PROT_READ);
       EXPECT(CUDA_SUCCESS, cuMemSetAccess(m.address, m.size, &read, 1));
       expect_that(rights(m.address, read.location) == CU_MEM_ACCESS_FLAGS_PROT_READ, "read");
     }},
    {"access.over_several_mappings", "one SetAccess over adjacent mappings: all are usable", documented,
     [](int) {
       primary();
       const Mapping m = map_new(4);
       fill(m.address, 0x3c, m.size);
       expect_that(holds(m.address, 0x3c, m.size), "bytes");
     }},
    {"access.over_a_gap", "SetAccess over a range with a hole: INVALID_VALUE", documented,
     [](int) {
       primary();
       const std::size_t granule = granularity(device_prop());
       const CUdeviceptr address = reserve(3 * granule);
       NEED(cuMemMap(address, granule, 0, chunk(granule, device_prop()), 0));
       NEED(cuMemMap(address + 2 * granule, granule, 0, chunk(granule, device_prop()), 0));
       const CUmemAccessDesc access = device_access();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(address, 3 * granule, &access, 1));
     }},
    {"access.part_of_mapping", "SetAccess on a part of a mapping: INVALID_VALUE", assumed,
     [](int) {
       primary();
       const std::size_t granule = granularity(device_prop());
       const CUdeviceptr address = reserve(2 * granule);
       NEED(cuMemMap(address, 2 * granule, 0, chunk(2 * granule, device_prop()), 0));
       const CUmemAccessDesc access = device_access();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(address, granule, &access, 1));
     }},
    {"access.unmapped", "SetAccess on a bare reservation: INVALID_VALUE", documented,
     [](int) {
       primary();
       const std::size_t granule = granularity(device_prop());
       const CUmemAccessDesc access = device_access();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(reserve(granule), granule, &access, 1));
     }},
    {"access.unknown_device", "access for a device that is none: INVALID_DEVICE or INVALID_VALUE", documented,
     [](int) {
       primary();
       const Mapping m = map_new();
       CUmemAccessDesc access = device_access();
       access.location.id = 1000;
       EXPECT_ONE_OF(cuMemSetAccess(m.address, m.size, &access, 1), CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_INVALID_VALUE);
     }},
    {"access.host_to_device_chunk", "host access to a device chunk is refused", documented,
     [](int) {
       primary();
       const Mapping m = map_new();
       const CUmemAccessDesc access = host_access();
       EXPECT_ONE_OF(cuMemSetAccess(m.address, m.size, &access, 1), CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED,
                     CUDA_ERROR_INVALID_DEVICE);
     }},
    {"access.second_device", "a peer that can reach the device gets access by SetAccess", documented,
     [](int) {
       primary();
       const int other = second_device();
       int can = 0;
       NEED(cuDeviceCanAccessPeer(&can, other, chosen_device));
       if (!can) not_available("no path between the devices");
       const Mapping m = map_new();
       CUmemAccessDesc access = device_access();
       access.location.id = other;
       expect_that(rights(m.address, access.location) == CU_MEM_ACCESS_FLAGS_PROT_NONE, "none before");
       EXPECT(CUDA_SUCCESS, cuMemSetAccess(m.address, m.size, &access, 1));
       expect_that(rights(m.address, access.location) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "read and write after");
       expect_that(rights(m.address, device_access().location) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "the owner's stays");
     }},
    {"share.fd_not_requested", "exporting a chunk that was not created for it: INVALID_VALUE", documented,
     [](int) {
       primary();
       const CUmemGenericAllocationHandle handle = chunk(granularity(device_prop()), device_prop());
       int fd = -1;
       EXPECT_ONE_OF(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                     CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_HANDLE);
     }},
    {"share.fd_round_trip", "an exported and imported chunk is the same memory", documented,
     [](int) {
       primary();
       const std::size_t granule = granularity(device_prop());
       const CUmemGenericAllocationHandle handle = chunk(granule, device_prop(kFd));
       const CUdeviceptr one = reserve(granule), two = reserve(granule);
       map(one, granule, handle);
       fill(one, 0x42, granule);
       map(two, granule, imported(exported(handle)));
       expect_that(holds(two, 0x42, granule), "bytes");
     }},
    {"share.fd_keeps_memory", "a descriptor keeps the memory when handle and mapping are gone", assumed,
     [](int) {
       primary();
       const std::size_t granule = granularity(device_prop());
       const CUmemGenericAllocationHandle handle = chunk(granule, device_prop(kFd));
       const CUdeviceptr address = reserve(granule);
       map(address, granule, handle);
       fill(address, 0x43, granule);
       const int fd = exported(handle);
       NEED(cuMemUnmap(address, granule));
       NEED(cuMemRelease(handle));
       map(address, granule, imported(fd));
       expect_that(holds(address, 0x43, granule), "bytes");
     }},
    {"share.fd_closed_after_import", "an imported chunk does not need the descriptor", documented,
     [](int) {
       primary();
       const std::size_t granule = granularity(device_prop());
       const int fd = exported(chunk(granule, device_prop(kFd)));
       const CUmemGenericAllocationHandle handle = imported(fd);
       ::close(fd);
       const CUdeviceptr address = reserve(granule);
       map(address, granule, handle);
       fill(address, 0x44, granule);
       expect_that(holds(address, 0x44, granule), "usable");
     }},
    {"share.import_wrong_fd", "importing a descriptor that is no chunk is refused", documented,
     [](int) {
       primary();
       granularity(device_prop());
       const int fd = ::open("/dev/null", O_RDWR);
       CUmemGenericAllocationHandle handle = 0;
       EXPECT_ONE_OF(cuMemImportFromShareableHandle(&handle, as_shareable(fd), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                     CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_OPERATING_SYSTEM,
                     CUDA_ERROR_NOT_SUPPORTED);
     }},
    {"share.export_imported", "an imported chunk cannot be exported again", assumed,
     [](int) {
       primary();
       const std::size_t granule = granularity(device_prop());
       const CUmemGenericAllocationHandle own = chunk(granule, device_prop(kFd));
       const CUmemGenericAllocationHandle handle = imported(exported(own));
       int fd = -1;
       EXPECT_ONE_OF(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                     CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_HANDLE);
     }},
};

}  // namespace
constinit const CaseList vmm_access_cases = list_of(cases);
}  // namespace vramd::conformance
