// Sticky errors: what kills a context, and what it answers then.
#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

// A memset of memory that nobody may touch; what the next synchronisation says.
CUresult memset_and_synchronize(CUdeviceptr address, std::size_t size) {
  const CUresult result = cuMemsetD8(address, 1, size);
  return result != CUDA_SUCCESS ? result : cuCtxSynchronize();
}

CUdeviceptr without_access() {
  primary();
  const std::size_t granule = granularity(device_prop());
  const CUdeviceptr address = reserve(granule);
  NEED(cuMemMap(address, granule, 0, chunk(granule, device_prop()), 0));
  return address;
}

constexpr Case cases[] = {
    {"faults.no_access", "touching a mapping without access: ILLEGAL_ADDRESS", documented,
     [](int) { EXPECT_ONE_OF(memset_and_synchronize(without_access(), 4096), CUDA_ERROR_ILLEGAL_ADDRESS); }},
    {"faults.sticky", "after a fault every later call of the context says so", documented,
     [](int) {
       const CUdeviceptr address = without_access();
       const CUdeviceptr block = device_memory(4096);
       const CUstream s = stream();
       EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, memset_and_synchronize(address, 4096));
       EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
       EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemsetD8Async(block, 1, 16, s));
       CUdeviceptr another = 0;
       EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&another, 4096));
       EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamQuery(s));
     }},
    {"faults.unmapped", "touching what was unmapped: ILLEGAL_ADDRESS or INVALID_VALUE", assumed,
     [](int) {
       primary();
       const Mapping m = map_new();
       NEED(cuMemUnmap(m.address, m.size));
       EXPECT_ONE_OF(memset_and_synchronize(m.address, 4096), CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_INVALID_VALUE);
     }},
    {"faults.access_taken", "touching a mapping whose access was taken: ILLEGAL_ADDRESS", documented,
     [](int) {
       primary();
       const Mapping m = map_new();
       const CUmemAccessDesc none = device_access(CU_MEM_ACCESS_FLAGS_PROT_NONE);
       NEED(cuMemSetAccess(m.address, m.size, &none, 1));
       EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, memset_and_synchronize(m.address, 4096));
     }},
    {"faults.read_only", "writing to a read-only mapping: ILLEGAL_ADDRESS", assumed,
     [](int) {
       primary();
       const Mapping m = map_new();
       const CUmemAccessDesc read = device_access(CU_MEM_ACCESS_FLAGS_PROT_READ);
       NEED(cuMemSetAccess(m.address, m.size, &read, 1));
       EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, memset_and_synchronize(m.address, 4096));
     }},
    {"faults.other_context_lives", "a fault leaves the context of another device alone", documented,
     [](int) {
       const int other = [] {
         primary();
         return second_device();
       }();
       const CUdeviceptr address = without_access();
       EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, memset_and_synchronize(address, 4096));
       CUcontext context = nullptr;
       NEED(cuDevicePrimaryCtxRetain(&context, other));
       NEED(cuCtxSetCurrent(context));
       EXPECT(CUDA_SUCCESS, memset_and_synchronize(device_memory(4096), 4096));
     }},
    {"faults.hole_in_copy", "a copy over a hole between mappings: ILLEGAL_ADDRESS or INVALID_VALUE", assumed,
     [](int) {
       primary();
       const std::size_t granule = granularity(device_prop());
       const CUdeviceptr address = reserve(3 * granule);
       map(address, granule, chunk(granule, device_prop()));
       map(address + 2 * granule, granule, chunk(granule, device_prop()));
       EXPECT_ONE_OF(memset_and_synchronize(address, 3 * granule), CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_INVALID_VALUE);
     }},
};

}  // namespace
constinit const CaseList fault_cases = list_of(cases);
}  // namespace vramd::conformance
