// What cuPointerGetAttribute and its plural say about each kind of memory.
#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

// Wide enough for every attribute used here; what the driver leaves alone stays 0.
template <class T>
T ask(CUpointer_attribute attribute, CUdeviceptr address) {
  unsigned long long raw[2] = {};
  NEED(cuPointerGetAttribute(raw, attribute, address));
  T value{};
  __builtin_memcpy(&value, raw, sizeof value);
  return value;
}

#define EXPECT_ATTRIBUTE(type, name, address, value) \
  expect_that(ask<type>(CU_POINTER_ATTRIBUTE_##name, address) == (value), #name)

constexpr Case cases[] = {
    {"pointers.device", "attributes of cuMemAlloc memory, from an address inside", documented,
     [](int) {
       const CUcontext context = primary();
       const CUdeviceptr block = device_memory(2 * kMiB), inside = block + 1000;
       EXPECT_ATTRIBUTE(CUcontext, CONTEXT, inside, context);
       EXPECT_ATTRIBUTE(unsigned, MEMORY_TYPE, inside, CU_MEMORYTYPE_DEVICE);
       EXPECT_ATTRIBUTE(CUdeviceptr, DEVICE_POINTER, inside, inside);
       EXPECT_ATTRIBUTE(unsigned char, IS_MANAGED, inside, 0);
       EXPECT_ATTRIBUTE(int, DEVICE_ORDINAL, inside, chosen_device);
       EXPECT_ATTRIBUTE(CUdeviceptr, RANGE_START_ADDR, inside, block);
       EXPECT_ATTRIBUTE(std::size_t, RANGE_SIZE, inside, 2 * kMiB);
       EXPECT_ATTRIBUTE(unsigned char, MAPPED, inside, 1);
       EXPECT_ATTRIBUTE(CUmemoryPool, MEMPOOL_HANDLE, inside, nullptr);
       EXPECT_ATTRIBUTE(int, ACCESS_FLAGS, inside, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
     }},
    {"pointers.device_sharing", "cuMemAlloc memory: legacy IPC yes, no handle types", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(2 * kMiB);
       EXPECT_ATTRIBUTE(unsigned char, IS_LEGACY_CUDA_IPC_CAPABLE, block, 1);
       EXPECT_ATTRIBUTE(unsigned long long, ALLOWED_HANDLE_TYPES, block, 0u);
     }},
    {"pointers.device_has_no_host_pointer", "HOST_POINTER of device memory: INVALID_VALUE", documented,
     [](int) {
       primary();
       void* pointer = nullptr;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, device_memory(256)));
     }},
    {"pointers.buffer_id", "buffer ids are unique and not used again", documented,
     [](int) {
       primary();
       const CUdeviceptr one = device_memory(4 * kMiB), two = device_memory(4 * kMiB);
       const auto first = ask<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, one);
       EXPECT_ATTRIBUTE(unsigned long long, BUFFER_ID, one + 100, first);
       expect_that(ask<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, two) != first, "two blocks, two ids");
       NEED(cuMemFree(one));
       const CUdeviceptr again = device_memory(4 * kMiB);
       expect_that(ask<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, again) != first, "a new one after free");
     }},
    {"pointers.mapping", "attributes of a mapping: device, no legacy IPC, its handle types", documented,
     [](int) {
       primary();
       const std::size_t granule = granularity(device_prop());
       const CUdeviceptr address = reserve(granule);
       map(address, granule, chunk(granule, device_prop(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)));
       EXPECT_ATTRIBUTE(unsigned, MEMORY_TYPE, address, CU_MEMORYTYPE_DEVICE);
       EXPECT_ATTRIBUTE(int, DEVICE_ORDINAL, address, chosen_device);
       EXPECT_ATTRIBUTE(unsigned char, IS_LEGACY_CUDA_IPC_CAPABLE, address, 0);
       EXPECT_ATTRIBUTE(unsigned long long, ALLOWED_HANDLE_TYPES, address,
                        static_cast<unsigned>(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
       EXPECT_ATTRIBUTE(CUdeviceptr, MAPPING_BASE_ADDR, address + 5, address);
       EXPECT_ATTRIBUTE(std::size_t, MAPPING_SIZE, address + 5, granule);
     }},
    {"pointers.mapping_has_no_context", "CONTEXT of a mapping: refused or null", assumed,
     [](int) {
       primary();
       const Mapping m = map_new();
       CUcontext context = nullptr;
       EXPECT_ONE_OF(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, m.address), CUDA_ERROR_INVALID_VALUE,
                     CUDA_SUCCESS);
       expect_that(context == nullptr, "null");
     }},
    {"pointers.mapping_without_access", "ACCESS_FLAGS of a mapping without access: none", assumed,
     [](int) {
       primary();
       const std::size_t granule = granularity(device_prop());
       const CUdeviceptr address = reserve(granule);
       NEED(cuMemMap(address, granule, 0, chunk(granule, device_prop()), 0));
       EXPECT_ATTRIBUTE(int, ACCESS_FLAGS, address, CU_MEM_ACCESS_FLAGS_PROT_NONE);
     }},
    {"pointers.pinned", "attributes of pinned memory", documented,
     [](int) {
       const CUcontext context = primary();
       char* const bytes = pinned_memory(8192);
       const CUdeviceptr inside = address_of(bytes + 100);
       EXPECT_ATTRIBUTE(unsigned, MEMORY_TYPE, inside, CU_MEMORYTYPE_HOST);
       EXPECT_ATTRIBUTE(CUcontext, CONTEXT, inside, context);
       EXPECT_ATTRIBUTE(void*, HOST_POINTER, inside, bytes + 100);
       EXPECT_ATTRIBUTE(CUdeviceptr, DEVICE_POINTER, inside, inside);
       EXPECT_ATTRIBUTE(unsigned char, IS_MANAGED, inside, 0);
       EXPECT_ATTRIBUTE(unsigned char, IS_LEGACY_CUDA_IPC_CAPABLE, inside, 0);
     }},
    {"pointers.managed", "attributes of managed memory", documented,
     [](int) {
       primary();
       if (!device_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) not_available("no managed memory");
       CUdeviceptr block = 0;
       NEED(cuMemAllocManaged(&block, kMiB, CU_MEM_ATTACH_GLOBAL));
       EXPECT_ATTRIBUTE(unsigned char, IS_MANAGED, block, 1);
       EXPECT_ATTRIBUTE(void*, HOST_POINTER, block, pointer_to(block));
       EXPECT_ATTRIBUTE(CUdeviceptr, DEVICE_POINTER, block, block);
       EXPECT_ATTRIBUTE(unsigned char, IS_LEGACY_CUDA_IPC_CAPABLE, block, 0);
     }},
    {"pointers.async", "attributes of stream-ordered memory: the pool's handle, no legacy IPC", documented,
     [](int) {
       primary();
       if (!device_attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) not_available("no pools");
       CUmemoryPool pool = nullptr;
       NEED(cuDeviceGetDefaultMemPool(&pool, chosen_device));
       CUdeviceptr block = 0;
       NEED(cuMemAllocAsync(&block, kMiB, nullptr));
       NEED(cuStreamSynchronize(nullptr));
       EXPECT_ATTRIBUTE(CUmemoryPool, MEMPOOL_HANDLE, block, pool);
       EXPECT_ATTRIBUTE(unsigned, MEMORY_TYPE, block, CU_MEMORYTYPE_DEVICE);
       EXPECT_ATTRIBUTE(unsigned char, IS_LEGACY_CUDA_IPC_CAPABLE, block, 0);
       EXPECT_ATTRIBUTE(unsigned long long, ALLOWED_HANDLE_TYPES, block, 0u);
     }},
    {"pointers.unknown_singular", "any attribute of memory that is not CUDA's: INVALID_VALUE", documented,
     [](int) {
       primary();
       const CUdeviceptr address = address_of(pageable_memory(4096));
       for (const CUpointer_attribute attribute :
            {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
             CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL}) {
         unsigned long long raw[2] = {};
         EXPECT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(raw, attribute, address));
       }
     }},
    {"pointers.unknown_plural", "the plural form succeeds with zeros there", documented,
     [](int) {
       primary();
       CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT,
                                           CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
       unsigned type = 99;
       CUcontext context = reinterpret_cast<CUcontext>(8);
       CUdeviceptr pointer = 99;
       void* data[] = {&type, &context, &pointer};
       EXPECT(CUDA_SUCCESS, cuPointerGetAttributes(3, attributes, data, address_of(pageable_memory(4096))));
       expect_that(type == 0 && context == nullptr && pointer == 0, "zeros");
     }},
    {"pointers.plural", "the plural form says what the singular one does", documented,
     [](int) {
       const CUcontext wanted = primary();
       const CUdeviceptr block = device_memory(2 * kMiB);
       CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT,
                                           CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_HOST_POINTER};
       unsigned type = 99;
       CUcontext context = nullptr;
       CUdeviceptr begin = 0;
       void* host = &begin;
       void* data[] = {&type, &context, &begin, &host};
       EXPECT(CUDA_SUCCESS, cuPointerGetAttributes(4, attributes, data, block + 7));
       expect_that(type == CU_MEMORYTYPE_DEVICE && context == wanted && begin == block, "values");
       expect_that(host == nullptr, "null where the singular form is refused");
     }},
    {"pointers.unknown_attribute", "an attribute that does not exist: INVALID_VALUE", documented,
     [](int) {
       primary();
       unsigned long long raw = 0;
       const int unknown = 9999;
       CUpointer_attribute attribute{};
       __builtin_memcpy(&attribute, &unknown, sizeof attribute);  // a cast could not leave the enumeration
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&raw, attribute, device_memory(256)));
     }},
    {"pointers.sync_memops", "SYNC_MEMOPS can be set on cuMemAlloc memory and read back", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(2 * kMiB);
       const unsigned on = 1;
       EXPECT_ATTRIBUTE(unsigned char, SYNC_MEMOPS, block, 0);
       EXPECT(CUDA_SUCCESS, cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block));
       EXPECT_ATTRIBUTE(unsigned char, SYNC_MEMOPS, block, 1);
     }},
    {"pointers.sync_memops_mapping", "SYNC_MEMOPS on a mapping: NOT_SUPPORTED", assumed,
     [](int) {
       primary();
       const Mapping m = map_new();
       const unsigned on = 1;
       EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, m.address));
     }},
    {"pointers.set_read_only", "setting MEMORY_TYPE: INVALID_VALUE", documented,
     [](int) {
       primary();
       const unsigned value = 1;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device_memory(256)));
     }},
    {"pointers.after_free", "attributes of a freed block: INVALID_VALUE", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(64 * kMiB);
       NEED(cuMemFree(block));
       unsigned type = 0;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block));
     }},
};

}  // namespace
constinit const CaseList pointer_cases = list_of(cases);
}  // namespace vramd::conformance
