// The simulated driver's memory: what a genuine driver keeps, refuses and punishes.
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/simgpu_machine.hpp"

static const OwnMachine machine("tiny-1g");

TEST_CASE("simgpu: a chunk keeps its bytes across unmap and map at another address") {
  TestContext context;
  const CUmemAllocationProp prop = device_prop(0);
  constexpr std::size_t kSize = 4 * kMiB;
  CUmemGenericAllocationHandle handle{};
  CU_OK(cuMemCreate(&handle, kSize, &prop, 0));
  CUdeviceptr first{}, second{};
  CU_OK(cuMemAddressReserve(&first, kSize, 0, 0, 0));
  CU_OK(cuMemAddressReserve(&second, kSize, 0, 0, 0));

  CU_OK(cuMemMap(first, kSize, 0, handle, 0));
  CU_OK(allow(first, kSize, 0));
  CU_OK(cuMemsetD32(first, 0xC0FFEE, kSize / 4));
  CU_OK(cuCtxSynchronize());
  CU_OK(cuMemUnmap(first, kSize));
  CU_OK(cuMemMap(second, kSize, 0, handle, 0));
  CU_OK(allow(second, kSize, 0));
  std::vector<unsigned> read(kSize / 4);
  CU_OK(cuMemcpyDtoH(read.data(), second, kSize));
  CHECK(read.front() == 0xC0FFEE);
  CHECK(read.back() == 0xC0FFEE);

  CU_OK(cuMemUnmap(second, kSize));
  CU_OK(cuMemRelease(handle));
  CU_OK(cuMemAddressFree(first, kSize));
  CU_OK(cuMemAddressFree(second, kSize));
}

TEST_CASE("simgpu: memory is charged at creation and given back at the last release or unmap") {
  TestContext context;
  const std::size_t before = free_memory();
  const CUmemAllocationProp prop = device_prop(0);
  CUmemGenericAllocationHandle handle{};
  CU_OK(cuMemCreate(&handle, 32 * kMiB, &prop, 0));
  CHECK(before - free_memory() == 32 * kMiB);
  CUdeviceptr address{};
  CU_OK(cuMemAddressReserve(&address, 32 * kMiB, 0, 0, 0));
  CU_OK(cuMemMap(address, 32 * kMiB, 0, handle, 0));
  CU_OK(cuMemRelease(handle));
  CHECK(before - free_memory() == 32 * kMiB);
  CU_OK(cuMemUnmap(address, 32 * kMiB));
  CHECK(free_memory() == before);
  CU_OK(cuMemAddressFree(address, 32 * kMiB));

  CUdeviceptr small{}, large{};
  CU_OK(cuMemAlloc(&small, 100));
  CU_OK(cuMemAlloc(&large, 3 * kMiB));
  CHECK(before - free_memory() == 6 * kMiB);
  CU_OK(cuMemFree(small));
  CU_OK(cuMemFree(large));
  CHECK(free_memory() == before);
}

TEST_CASE("simgpu: a context costs its overhead and gives everything back at its end") {
  TestContext outer;
  const std::size_t before = free_memory();
  {
    TestContext inner;
    CHECK(before - free_memory() == 300 * kMiB);
    CUdeviceptr forgotten{};
    CU_OK(cuMemAlloc(&forgotten, 8 * kMiB));
  }
  CHECK(free_memory() == before);
}

TEST_CASE("simgpu: what doesn't fit is refused with OUT_OF_MEMORY, and the context stays usable") {
  TestContext context;
  CUdeviceptr block{};
  CHECK(cuMemAlloc(&block, 1024 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY);
  CU_OK(cuMemAlloc(&block, kMiB));
  CU_OK(cuMemFree(block));
}

TEST_CASE("simgpu: a released handle is not a handle any more") {
  TestContext context;
  const CUmemAllocationProp prop = device_prop(0);
  CUmemGenericAllocationHandle stale{}, fresh{};
  CU_OK(cuMemCreate(&stale, 2 * kMiB, &prop, 0));
  CU_OK(cuMemRelease(stale));
  CU_OK(cuMemCreate(&fresh, 2 * kMiB, &prop, 0));
  CHECK(stale != fresh);
  CUdeviceptr address{};
  CU_OK(cuMemAddressReserve(&address, 2 * kMiB, 0, 0, 0));
  CHECK(cuMemMap(address, 2 * kMiB, 0, stale, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemRelease(stale) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemRelease(fresh));
  CU_OK(cuMemAddressFree(address, 2 * kMiB));
  expect_misuse({"release of a handle that is not there"});
}

TEST_CASE("simgpu: map, unmap and access refuse what a genuine driver refuses") {
  TestContext context;
  const CUmemAllocationProp prop = device_prop(0);
  CUmemGenericAllocationHandle handle{};
  CUdeviceptr address{};
  CU_OK(cuMemCreate(&handle, 4 * kMiB, &prop, 0));
  CU_OK(cuMemAddressReserve(&address, 16 * kMiB, 0, 0, 0));
  CHECK(cuMemMap(address, 2 * kMiB, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);              // not the whole handle
  CHECK(cuMemMap(address, 4 * kMiB, 2 * kMiB, handle, 0) == CUDA_ERROR_INVALID_VALUE);       // offset
  CHECK(cuMemMap(address, 4 * kMiB, 0, handle, 1) == CUDA_ERROR_INVALID_VALUE);              // flags
  CHECK(cuMemMap(address + 4096, 4 * kMiB, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);       // alignment
  CHECK(cuMemMap(address + 14 * kMiB, 4 * kMiB, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);  // beyond the reservation
  CU_OK(cuMemMap(address, 4 * kMiB, 0, handle, 0));
  CHECK(cuMemMap(address + 2 * kMiB, 4 * kMiB, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);  // over a mapping
  CHECK(allow(address, 6 * kMiB, 0) == CUDA_ERROR_INVALID_VALUE);                           // not fully mapped
  CHECK(allow(address, 4 * kMiB, 7) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuMemUnmap(address, 2 * kMiB) == CUDA_ERROR_INVALID_VALUE);  // a part
  CHECK(cuMemAddressFree(address, 16 * kMiB) == CUDA_ERROR_INVALID_VALUE);
  CUmemAccessDesc host{};
  host.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  host.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK(cuMemSetAccess(address, 4 * kMiB, &host, 1) == CUDA_ERROR_INVALID_VALUE);  // the host can't reach device memory
  unsigned long long rights = 9;
  CU_OK(cuMemGetAccess(&rights, &prop.location, address));
  CHECK(rights == 0);
  CU_OK(cuMemUnmap(address, 4 * kMiB));
  CU_OK(cuMemRelease(handle));
  CHECK(cuMemAddressFree(address, 8 * kMiB) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemAddressFree(address, 16 * kMiB));
  expect_misuse({"cuMemAddressFree of what is not a free reservation", "cuMemMap onto what is not an empty reservation",
                 "cuMemSetAccess of what is not whole mappings", "cuMemUnmap of what is not whole mappings"});
}

TEST_CASE("simgpu: a hint for the address is honoured where it is free") {
  TestContext context;
  CUdeviceptr first{}, again{}, other{};
  CU_OK(cuMemAddressReserve(&first, 8 * kMiB, 0, 0, 0));
  CU_OK(cuMemAddressReserve(&other, 8 * kMiB, 0, first, 0));
  CHECK(other != first);
  CU_OK(cuMemAddressFree(first, 8 * kMiB));
  CU_OK(cuMemAddressReserve(&again, 8 * kMiB, 0, first, 0));
  CHECK(again == first);
  CU_OK(cuMemAddressFree(again, 8 * kMiB));
  CU_OK(cuMemAddressFree(other, 8 * kMiB));
}

TEST_CASE("simgpu: the GPU faults on memory without mapping or access, and the error sticks") {
  const CUmemAllocationProp prop = device_prop(0);
  CUdeviceptr address{};
  CUmemGenericAllocationHandle handle{};
  const bool mapped = GENERATE(false, true);
  TestContext context;
  CU_OK(cuMemAddressReserve(&address, 2 * kMiB, 0, 0, 0));
  CU_OK(cuMemCreate(&handle, 2 * kMiB, &prop, 0));
  if (mapped) CU_OK(cuMemMap(address, 2 * kMiB, 0, handle, 0));  // a fresh mapping has no access

  CU_OK(cuMemsetD8Async(address, 1, 16, nullptr));
  CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr block{};
  CHECK(cuMemAlloc(&block, 16) == CUDA_ERROR_ILLEGAL_ADDRESS);

  if (mapped) CU_OK(cuMemUnmap(address, 2 * kMiB));
  CU_OK(cuMemRelease(handle));
  CU_OK(cuMemAddressFree(address, 2 * kMiB));
  expect_misuse({"context faulted"});
}

TEST_CASE("simgpu: access may be read-only") {
  TestContext context;
  const CUmemAllocationProp prop = device_prop(0);
  CUmemGenericAllocationHandle handle{};
  CUdeviceptr address{};
  CU_OK(cuMemCreate(&handle, 2 * kMiB, &prop, 0));
  CU_OK(cuMemAddressReserve(&address, 2 * kMiB, 0, 0, 0));
  CU_OK(cuMemMap(address, 2 * kMiB, 0, handle, 0));
  CUmemAccessDesc access{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READ};
  CU_OK(cuMemSetAccess(address, 2 * kMiB, &access, 1));
  char byte = 1;
  CU_OK(cuMemcpyDtoH(&byte, address, 1));
  CHECK(byte == 0);
  CU_OK(cuMemsetD8Async(address, 1, 1, nullptr));
  CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CU_OK(cuMemUnmap(address, 2 * kMiB));
  CU_OK(cuMemRelease(handle));
  CU_OK(cuMemAddressFree(address, 2 * kMiB));
  expect_misuse({"context faulted"});
}

TEST_CASE("simgpu: double, interior and foreign frees are refused") {
  TestContext context;
  CUdeviceptr block{};
  char local = 0;
  CU_OK(cuMemAlloc(&block, 4096));
  CHECK(cuMemFree(block + 512) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(reinterpret_cast<CUdeviceptr>(&local)) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemFree(block));
  CHECK(cuMemFree(block) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc(&block, 0) == CUDA_ERROR_INVALID_VALUE);
  expect_misuse({"free of memory that was not allocated"});
}

TEST_CASE("simgpu: copies stay inside their allocation and their kind of memory") {
  TestContext context;
  CUdeviceptr block{};
  char bytes[64] = {};
  CU_OK(cuMemAlloc(&block, 32));
  CHECK(cuMemcpyHtoD(block, bytes, 64) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(&bytes), bytes, 8) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemcpyHtoD(block, bytes, 32));
  CU_OK(cuMemFree(block));
}

TEST_CASE("simgpu: pointer attributes tell mappings and cuMemAlloc memory apart") {
  TestContext context;
  const CUmemAllocationProp prop = device_prop(0, true);
  CUdeviceptr block{}, address{};
  CUmemGenericAllocationHandle handle{};
  CU_OK(cuMemAlloc(&block, 4096));
  CU_OK(cuMemCreate(&handle, 2 * kMiB, &prop, 0));
  CU_OK(cuMemAddressReserve(&address, 2 * kMiB, 0, 0, 0));
  CU_OK(cuMemMap(address, 2 * kMiB, 0, handle, 0));
  CU_OK(allow(address, 2 * kMiB, 0));

  CUcontext owner{};
  unsigned long long handles = 9;
  unsigned legacy_ipc = 9;
  CU_OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, block + 5));
  CHECK(owner == context.context);
  CU_OK(cuPointerGetAttribute(&handles, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, block));
  CHECK(handles == 0);
  CU_OK(cuPointerGetAttribute(&legacy_ipc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, block));
  CHECK(legacy_ipc == 1);
  CHECK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuPointerGetAttribute(&handles, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, address));
  CHECK(handles == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUipcMemHandle ipc;
  CHECK(cuIpcGetMemHandle(&ipc, address) == CUDA_ERROR_INVALID_VALUE);
  CUmemGenericAllocationHandle retained{};
  CHECK(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(block)) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(address + kMiB)));
  CHECK(retained == handle);
  CU_OK(cuMemRelease(retained));

  int local = 0;
  int ordinal = 0;
  unsigned type = 9;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* values[] = {&type, &ordinal};
  CU_OK(cuPointerGetAttributes(2, names, values, reinterpret_cast<CUdeviceptr>(&local)));
  CHECK(type == 0);
  CHECK(ordinal == -2);
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&local)) ==
        CUDA_ERROR_INVALID_VALUE);

  CU_OK(cuMemUnmap(address, 2 * kMiB));
  CU_OK(cuMemRelease(handle));
  CU_OK(cuMemAddressFree(address, 2 * kMiB));
  CU_OK(cuMemFree(block));
}

TEST_CASE("simgpu: host chunks are not charged, and the host may get access") {
  TestContext context;
  const std::size_t before = free_memory();
  CUmemAllocationProp prop = device_prop(0);
  prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
  CUmemGenericAllocationHandle handle{};
  CHECK(cuMemCreate(&handle, 2 * kMiB, &prop, 0) == CUDA_ERROR_INVALID_VALUE);
  prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  prop.location.id = 0;
  CU_OK(cuMemCreate(&handle, 2 * kMiB, &prop, 0));
  CHECK(free_memory() == before);
  CUdeviceptr address{};
  CU_OK(cuMemAddressReserve(&address, 2 * kMiB, 0, 0, 0));
  CU_OK(cuMemMap(address, 2 * kMiB, 0, handle, 0));
  CUmemAccessDesc both[2] = {{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}, {}};
  both[1].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  both[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CU_OK(cuMemSetAccess(address, 2 * kMiB, both, 2));
  CU_OK(cuMemsetD8(address, 0x5A, 2 * kMiB));
  CU_OK(cuCtxSynchronize());
  CHECK(*reinterpret_cast<unsigned char*>(address + kMiB) == 0x5A);
  CU_OK(cuMemUnmap(address, 2 * kMiB));
  CU_OK(cuMemRelease(handle));
  CU_OK(cuMemAddressFree(address, 2 * kMiB));
}

TEST_CASE("simgpu: host registration refuses overlaps") {
  TestContext context;
  std::vector<char> buffer(3 * 4096);
  CU_OK(cuMemHostRegister(buffer.data(), 2 * 4096, 0));
  CHECK(cuMemHostRegister(buffer.data() + 4096, 2 * 4096, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CHECK(cuMemHostUnregister(buffer.data() + 4096) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CU_OK(cuMemHostUnregister(buffer.data()));
  CU_OK(cuMemHostRegister(buffer.data() + 4096, 2 * 4096, 0));
  CU_OK(cuMemHostUnregister(buffer.data() + 4096));
}

TEST_CASE("simgpu: stream-ordered memory is freed when the stream gets there") {
  TestContext context;
  StreamGate gate;
  CUstream stream{};
  CUdeviceptr block{};
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const std::size_t before = free_memory();
  CU_OK(cuMemAllocAsync(&block, 16 * kMiB, stream));
  gate.close_in(stream);
  CU_OK(cuMemFreeAsync(block, stream));
  CHECK(before - free_memory() == 16 * kMiB);
  CHECK(cuMemFreeAsync(block, stream) == CUDA_ERROR_INVALID_VALUE);
  gate.open();
  CU_OK(cuStreamSynchronize(stream));
  CHECK(free_memory() == before);
  CU_OK(cuStreamDestroy(stream));
  expect_misuse({"free of memory that was not allocated"});
}

TEST_CASE("simgpu: 2D copies and memsets touch their rectangle only") {
  TestContext context;
  CUdeviceptr block{};
  std::size_t pitch = 0;
  CU_OK(cuMemAllocPitch(&block, &pitch, 100, 10, 4));
  CU_OK(cuMemsetD8(block, 0, pitch * 10));
  CU_OK(cuMemsetD2D8(block + 10, pitch, 7, 20, 3));
  CUDA_MEMCPY2D shape{};
  std::vector<unsigned char> rows(100 * 10);
  shape.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  shape.srcDevice = block;
  shape.srcPitch = pitch;
  shape.dstMemoryType = CU_MEMORYTYPE_HOST;
  shape.dstHost = rows.data();
  shape.dstPitch = 100;
  shape.WidthInBytes = 100;
  shape.Height = 10;
  CU_OK(cuMemcpy2D(&shape));
  for (std::size_t y = 0; y < 10; ++y) {
    for (std::size_t x = 0; x < 100; ++x) {
      if (rows[y * 100 + x] != (y < 3 && x >= 10 && x < 30 ? 7 : 0)) FAIL("row " << y << " column " << x);
    }
  }
  CU_OK(cuMemFree(block));
}

TEST_CASE("simgpu: memory unmapped under running work is a fault, not a crash") {
  TestContext context;
  constexpr std::size_t kSize = 256 * kMiB;  // filling it takes long enough to be caught in the middle
  const CUmemAllocationProp prop = device_prop(0);
  CUmemGenericAllocationHandle handle{};
  CUdeviceptr address{};
  CU_OK(cuMemCreate(&handle, kSize, &prop, 0));
  CU_OK(cuMemAddressReserve(&address, kSize, 0, 0, 0));
  CU_OK(cuMemMap(address, kSize, 0, handle, 0));
  CU_OK(allow(address, kSize, 0));
  CUevent begun{};
  CU_OK(cuEventCreate(&begun, CU_EVENT_DISABLE_TIMING));
  CU_OK(cuEventRecord(begun, nullptr));
  CU_OK(cuMemsetD8Async(address, 1, kSize, nullptr));
  CU_OK(cuEventSynchronize(begun));
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CU_OK(cuMemUnmap(address, kSize));
  CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CU_OK(cuMemRelease(handle));
  CU_OK(cuMemAddressFree(address, kSize));
  expect_misuse({"memory taken away while the GPU uses it", "context faulted"});
}
