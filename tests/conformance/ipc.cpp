// Legacy IPC. The importer is this program again: it does a body named "ipc.*" under --child with the handle in the
// environment.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/conformance/lists.hpp"
#include "tests/conformance/memory.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

constexpr char kHandleName[] = "VRAMD_CONFORMANCE_HANDLE";  // hex
constexpr std::size_t kSize = 4 * kMiB;

CUipcMemHandle handle_of(CUdeviceptr block) {
  CUipcMemHandle handle{};
  const CUresult result = cuIpcGetMemHandle(&handle, block);
  if (result == CUDA_ERROR_NOT_SUPPORTED) not_available("no legacy IPC here");
  need(result, "cuIpcGetMemHandle");
  return handle;
}

void to_environment(const CUipcMemHandle& handle) {
  char hex[2 * sizeof handle.reserved + 1];
  for (std::size_t i = 0; i < sizeof handle.reserved; ++i) {
    std::snprintf(hex + 2 * i, 3, "%02x", static_cast<unsigned char>(handle.reserved[i]));
  }
  need_that(::setenv(kHandleName, hex, 1) == 0, "setenv");
}

bool from_environment(CUipcMemHandle& handle) {
  const char* const hex = ::getenv(kHandleName);
  if (!hex || std::strlen(hex) != 2 * sizeof handle.reserved) return false;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i < sizeof handle.reserved; ++i) {
    handle.reserved[i] = static_cast<char>(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
  }
  return true;
}

// Runs the case's other half in a new process; its verdict becomes this one's.
void in_importer(const char* name, const CUipcMemHandle& handle) {
  to_environment(handle);
  int ends[2] = {-1, -1};
  need_that(::pipe(ends) == 0, "pipe");
  char device[16], record[16];
  std::snprintf(device, sizeof device, "%d", chosen_device);
  std::snprintf(record, sizeof record, "%d", ends[1]);
  const pid_t child = ::fork();
  need_that(child >= 0, "fork");
  if (child == 0) {
    ::execl("/proc/self/exe", "vramd_conformance", "--case", name, "--device", device, "--child", record,
            static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(ends[1]);
  char text[4096] = "";
  const ssize_t got = ::read(ends[0], text, sizeof text - 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  need_that(got > 0, "the importer said something");
  const char* const line = std::strchr(text, '\n');
  observe("importer: %s", line ? line + 1 : text);
  expect_that(std::strncmp(text, "as_expected\n", 12) == 0, "importer as expected");
}

CUdeviceptr open(const CUipcMemHandle& handle) {
  CUdeviceptr block = 0;
  NEED(cuIpcOpenMemHandle(&block, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  return block;
}

void read_and_write(int) {
  CUipcMemHandle handle{};
  const bool importer = from_environment(handle);
  primary();
  if (importer) {
    const CUdeviceptr block = open(handle);
    expect_that(holds(block, 0x31, kSize), "bytes of the exporter");
    fill(block, 0x32, kSize);
    EXPECT(CUDA_SUCCESS, cuIpcCloseMemHandle(block));
    return;
  }
  const CUdeviceptr block = device_memory(kSize);
  fill(block, 0x31, kSize);
  in_importer("ipc.read_and_write", handle_of(block));
  expect_that(holds(block, 0x32, kSize), "bytes of the importer");
}

void open_twice(int) {
  CUipcMemHandle handle{};
  const bool importer = from_environment(handle);
  primary();
  if (importer) {
    const CUdeviceptr one = open(handle), two = open(handle);
    expect_that(one == two, "the same address");
    EXPECT(CUDA_SUCCESS, cuIpcCloseMemHandle(one));
    expect_that(holds(two, 0x31, kSize), "open still");
    EXPECT(CUDA_SUCCESS, cuIpcCloseMemHandle(two));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(two));
    return;
  }
  const CUdeviceptr block = device_memory(kSize);
  fill(block, 0x31, kSize);
  in_importer("ipc.open_twice", handle_of(block));
}

void importer_attributes(int) {
  CUipcMemHandle handle{};
  const bool importer = from_environment(handle);
  primary();
  if (importer) {
    const CUdeviceptr block = open(handle);
    unsigned type = 0;
    EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block));
    expect_that(type == CU_MEMORYTYPE_DEVICE, "device memory");
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(block));
    return;
  }
  in_importer("ipc.importer_frees", handle_of(device_memory(kSize)));
}

constexpr Case cases[] = {
    {"ipc.same_handle_twice", "asking twice gives the same handle", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(kSize);
       const CUipcMemHandle one = handle_of(block), two = handle_of(block);
       expect_that(std::memcmp(&one, &two, sizeof one) == 0, "the same");
     }},
    {"ipc.new_handle_after_free", "memory that is freed and allocated again gets another handle", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(kSize);
       const CUipcMemHandle one = handle_of(block);
       NEED(cuMemFree(block));
       const CUipcMemHandle two = handle_of(device_memory(kSize));
       expect_that(std::memcmp(&one, &two, sizeof one) != 0, "another");
     }},
    {"ipc.mapping_refused", "cuIpcGetMemHandle of a mapping: INVALID_VALUE", documented,
     [](int) {
       primary();
       const Mapping m = map_new();
       CUipcMemHandle handle{};
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, m.address));
     }},
    {"ipc.async_refused", "cuIpcGetMemHandle of stream-ordered memory: INVALID_VALUE", documented,
     [](int) {
       primary();
       if (!device_attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) not_available("no pools");
       CUdeviceptr block = 0;
       NEED(cuMemAllocAsync(&block, kSize, nullptr));
       NEED(cuStreamSynchronize(nullptr));
       CUipcMemHandle handle{};
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, block));
     }},
    {"ipc.open_own", "opening a handle in the process that made it is refused", assumed,
     [](int) {
       primary();
       const CUipcMemHandle handle = handle_of(device_memory(kSize));
       CUdeviceptr block = 0;
       EXPECT_ONE_OF(cuIpcOpenMemHandle(&block, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_CONTEXT,
                     CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_MAP_FAILED);
     }},
    {"ipc.read_and_write", "another process reads and writes the block", documented, read_and_write},
    {"ipc.open_twice", "opening twice gives the same address, closed when closed as often", documented, open_twice},
    {"ipc.importer_frees", "cuMemFree of an opened block: INVALID_VALUE", assumed, importer_attributes},
    {"ipc.close_unknown", "closing what was not opened: INVALID_VALUE", documented,
     [](int) {
       primary();
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(device_memory(kSize)));
     }},
};

}  // namespace
constinit const CaseList ipc_cases = list_of(cases);
}  // namespace vramd::conformance
