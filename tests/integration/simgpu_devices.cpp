// Several simulated GPUs, and which of them a process sees.
#include <sstream>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/simgpu_machine.hpp"

static const OwnMachine machine("tiny-1g", "3");

namespace {

std::string uuid_of(int device) {
  CUuuid uuid;
  CU_OK(cuDeviceGetUuid(&uuid, device));
  std::string text;
  for (const char c : uuid.bytes) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(c));
    text += byte;
  }
  return text;
}

std::string with_dashes(const std::string& uuid) {
  return "GPU-" + uuid.substr(0, 8) + "-" + uuid.substr(8, 4) + "-" + uuid.substr(12, 4) + "-" + uuid.substr(16, 4) + "-" +
         uuid.substr(20);
}

std::string seen_with(const std::string& visible) {
  ChildProcess child({SIMGPU_CHILD, "devices"}, {"CUDA_VISIBLE_DEVICES=" + visible});
  return child.line();
}

}  // namespace

TEST_CASE("simgpu: devices have memory, identity and peers of their own") {
  TestContext first(0);
  const std::size_t before = free_memory();
  TestContext second(1);
  CUdeviceptr far{};
  CU_OK(cuMemAlloc(&far, 64 * kMiB));
  int ordinal = -1, can = -1;
  CU_OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, far));
  CHECK(ordinal == 1);
  CU_OK(cuCtxSetCurrent(first.context));
  CHECK(free_memory() == before);
  CHECK(uuid_of(0) != uuid_of(1));
  CU_OK(cuDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 1);
  CHECK(cuCtxDisablePeerAccess(second.context) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  CU_OK(cuCtxEnablePeerAccess(second.context, 0));
  CHECK(cuCtxEnablePeerAccess(second.context, 0) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);

  CUdeviceptr near{};
  unsigned read = 0;
  CU_OK(cuMemAlloc(&near, 4096));
  CU_OK(cuMemsetD32(near, 42, 1024));
  CU_OK(cuMemcpyPeer(far, second.context, near, first.context, 4096));
  CU_OK(cuMemcpyDtoH(&read, far + 4092, 4));
  CHECK(read == 42);
  char bus[16];
  CUdevice found = -1;
  CU_OK(cuDeviceGetPCIBusId(bus, sizeof bus, 2));
  CU_OK(cuDeviceGetByPCIBusId(&found, bus));
  CHECK(found == 2);
}

TEST_CASE("simgpu: the primary context is counted, and its reset frees the device's memory") {
  CU_OK(cuInit(0));
  CUcontext one{}, two{};
  CU_OK(cuDevicePrimaryCtxRetain(&one, 2));
  CU_OK(cuDevicePrimaryCtxRetain(&two, 2));
  CHECK(one == two);
  CU_OK(cuCtxSetCurrent(one));
  const std::size_t before = free_memory();
  CUdeviceptr block{};
  CU_OK(cuMemAlloc(&block, 64 * kMiB));
  CU_OK(cuDevicePrimaryCtxRelease(2));
  CHECK(before - free_memory() == 64 * kMiB);
  CU_OK(cuDevicePrimaryCtxReset(2));
  int active = 1;
  unsigned flags = 0;
  CU_OK(cuDevicePrimaryCtxGetState(2, &flags, &active));
  CHECK(active == 0);
  CHECK(cuMemFree(block) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CU_OK(cuDevicePrimaryCtxRetain(&two, 2));
  CHECK(one == two);
  CHECK(free_memory() == before);
  CHECK(cuMemFree(block) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuDevicePrimaryCtxRelease(2));
  CHECK(cuDevicePrimaryCtxRelease(2) == CUDA_ERROR_INVALID_CONTEXT);
  CU_OK(cuCtxSetCurrent(nullptr));
  expect_misuse({"free of memory that was not allocated"});
}

TEST_CASE("simgpu: CUDA_VISIBLE_DEVICES chooses and orders devices") {
  CU_OK(cuInit(0));
  const std::string a = uuid_of(0), b = uuid_of(1), c = uuid_of(2);
  CHECK(seen_with("2,0") == "0 2 " + c + " " + a);
  CHECK(seen_with("1,7,0") == "0 1 " + b);  // what follows an invalid one is invisible
  CHECK(seen_with("") == "100 0");
  CHECK(seen_with("-1") == "100 0");
  CHECK(seen_with("0,0") == "100 0");
  CHECK(seen_with(with_dashes(b)) == "0 1 " + b);
  CHECK(seen_with(with_dashes(c).substr(0, 14) + ",0") == "0 2 " + c + " " + a);
}
