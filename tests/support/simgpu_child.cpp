// A second process on a simulated machine, for tests of what processes share. Roles:
//
// hold MIB: allocates, prints "held" or the error's number, waits for the end of its input
// chunk MIB: like hold, with cuMemCreate
// fork-hold MIB: like hold; forks, prints the child's pid, both wait
// churn: prints "churning", then creates, exports, imports and releases chunks for ever
// write: receives a descriptor over the socket at its input, imports, fills with 0x77, prints "written"
// import-dead: receives a descriptor, waits for a byte, imports, prints the result and the chunk's first byte
// ipc HEX: opens the legacy IPC handle, prints its first byte, writes 0x66 there
// stuck: receives a descriptor, maps it, leaves an operation in a stream that never ends, prints "stuck", waits
// record HEX: opens the event, records it behind an operation that never ends, prints "recorded", waits
// event HEX: opens the event, prints "waiting", synchronises with it, prints "passed"
// print: prints much, then looks whether it arrived in fresh memory of the card
// devices: prints count, then name and UUID of each device
// counts: one cuInit, one unimplemented call
// draws: 1000 allocations of 256 bytes, prints which failed
// blind: uses up its descriptors, asks for the free memory and for more than that, prints "looked"
#include <cuda.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/support/child_process.hpp"

namespace {

[[noreturn]] void fail(const char* what, CUresult result) {
  std::printf("%s failed: %d\n", what, static_cast<int>(result));
  std::exit(3);
}

void need(const char* what, CUresult result) {
  if (result != CUDA_SUCCESS) fail(what, result);
}

void use_device() {
  CUcontext context{};
  need("cuInit", cuInit(0));
  need("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, 0));
  need("cuCtxSetCurrent", cuCtxSetCurrent(context));
}

void say(const char* text) {
  std::printf("%s\n", text);
  std::fflush(stdout);
}

int received() {
  const int fd = receive_descriptor(STDIN_FILENO);
  if (fd < 0) fail("recvmsg", CUDA_ERROR_UNKNOWN);
  return fd;
}

CUresult map_import(int fd, CUdeviceptr& address) {
  constexpr std::size_t kSize = 2u << 20;
  CUmemGenericAllocationHandle handle{};
  void* const shareable = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
  const CUresult result = cuMemImportFromShareableHandle(&handle, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (result != CUDA_SUCCESS) return result;
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  need("cuMemAddressReserve", cuMemAddressReserve(&address, kSize, 0, 0, 0));
  need("cuMemMap", cuMemMap(address, kSize, 0, handle, 0));
  need("cuMemSetAccess", cuMemSetAccess(address, kSize, &access, 1));
  return CUDA_SUCCESS;
}

void wait_for_end_of_input() {
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

int hold(std::size_t bytes, bool chunk) {
  use_device();
  CUdeviceptr block{};
  CUmemGenericAllocationHandle handle{};
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const CUresult result = chunk ? cuMemCreate(&handle, bytes, &prop, 0) : cuMemAlloc(&block, bytes);
  say(result == CUDA_SUCCESS ? "held" : std::to_string(static_cast<int>(result)).c_str());
  wait_for_end_of_input();
  return 0;
}

int churn() {
  use_device();
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  say("churning");
  for (unsigned round = 0;; ++round) {
    CUmemGenericAllocationHandle chunks[8];
    for (auto& chunk : chunks) need("cuMemCreate", cuMemCreate(&chunk, 2u << 20, &prop, 0));
    int fd = -1;
    need("cuMemExportToShareableHandle",
         cuMemExportToShareableHandle(&fd, chunks[round % 8], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    for (const auto chunk : chunks) need("cuMemRelease", cuMemRelease(chunk));
    ::close(fd);
  }
}

int fork_hold(std::size_t bytes) {
  use_device();
  CUdeviceptr block{};
  need("cuMemAlloc", cuMemAlloc(&block, bytes));
  say("held");
  const pid_t child = ::fork();
  if (child > 0) say(std::to_string(child).c_str());
  for (;;) ::pause();
}

int write_import() {
  use_device();
  CUdeviceptr address{};
  need("import", map_import(received(), address));
  need("cuMemsetD8", cuMemsetD8(address, 0x77, 2u << 20));
  need("cuCtxSynchronize", cuCtxSynchronize());
  say("written");
  return 0;
}

int import_later() {
  use_device();
  const int fd = received();
  say("received");
  wait_for_end_of_input();
  CUdeviceptr address{};
  unsigned char byte = 0;
  const CUresult result = map_import(fd, address);
  if (result == CUDA_SUCCESS) need("cuMemcpyDtoH", cuMemcpyDtoH(&byte, address, 1));
  std::printf("%d %d\n", static_cast<int>(result), byte);
  return 0;
}

bool from_hex(const char* hex, void* out, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    unsigned value = 0;
    if (std::sscanf(hex + 2 * i, "%2x", &value) != 1) return false;
    static_cast<unsigned char*>(out)[i] = static_cast<unsigned char>(value);
  }
  return true;
}

int open_ipc(const char* hex) {
  use_device();
  CUipcMemHandle handle;
  if (!from_hex(hex, &handle, sizeof handle)) return 4;
  CUdeviceptr first{}, second{};
  unsigned char byte = 0;
  need("cuIpcOpenMemHandle", cuIpcOpenMemHandle(&first, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  need("cuIpcOpenMemHandle again", cuIpcOpenMemHandle(&second, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  need("cuMemcpyDtoH", cuMemcpyDtoH(&byte, first, 1));
  need("cuMemsetD8", cuMemsetD8(first, 0x66, 1));
  need("cuIpcCloseMemHandle", cuIpcCloseMemHandle(first));
  need("cuIpcCloseMemHandle again", cuIpcCloseMemHandle(first));
  const CUresult third = cuIpcCloseMemHandle(first);
  std::printf("%d %d %d\n", byte, first == second, static_cast<int>(third));
  return 0;
}

int stay_stuck() {
  use_device();
  CUdeviceptr address{};
  void* word = nullptr;
  need("import", map_import(received(), address));
  need("cuMemHostAlloc", cuMemHostAlloc(&word, 4, 0));
  std::memset(word, 0, 4);
  need("cuStreamWaitValue32", cuStreamWaitValue32(nullptr, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_EQ));
  ::usleep(20000);
  say("stuck");
  wait_for_end_of_input();
  ::_exit(0);
}

int record_and_stay(const char* hex) {
  use_device();
  CUipcEventHandle handle;
  CUevent event{};
  void* word = nullptr;
  if (!from_hex(hex, &handle, sizeof handle)) return 4;
  need("cuIpcOpenEventHandle", cuIpcOpenEventHandle(&event, handle));
  need("cuMemHostAlloc", cuMemHostAlloc(&word, 4, 0));
  std::memset(word, 0, 4);
  need("cuStreamWaitValue32", cuStreamWaitValue32(nullptr, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_EQ));
  need("cuEventRecord", cuEventRecord(event, nullptr));
  say("recorded");
  wait_for_end_of_input();
  ::_exit(0);
}

int wait_for_event(const char* hex) {
  use_device();
  CUipcEventHandle handle;
  CUevent event{};
  if (!from_hex(hex, &handle, sizeof handle)) return 4;
  need("cuIpcOpenEventHandle", cuIpcOpenEventHandle(&event, handle));
  say(cuEventQuery(event) == CUDA_ERROR_NOT_READY ? "waiting" : "nothing to wait for");
  need("cuStreamWaitEvent", cuStreamWaitEvent(nullptr, event, 0));
  need("cuStreamSynchronize", cuStreamSynchronize(nullptr));
  need("cuEventSynchronize", cuEventSynchronize(event));
  say("passed");
  return 0;
}

// With closed standard streams nothing that is printed may arrive anywhere.
int print_into_nothing() {
  use_device();
  for (int i = 0; i < 1000; ++i) std::printf("this is no memory of a card\n");
  std::fflush(stdout);
  CUdeviceptr block{};
  char bytes[64] = {};
  need("cuMemAlloc", cuMemAlloc(&block, 4u << 20));
  need("cuMemcpyDtoH", cuMemcpyDtoH(bytes, block, sizeof bytes));
  for (const char byte : bytes) {
    if (byte != 0) return 5;
  }
  return 0;
}

int list_devices() {
  const CUresult result = cuInit(0);
  int count = 0;
  if (result == CUDA_SUCCESS) need("cuDeviceGetCount", cuDeviceGetCount(&count));
  std::printf("%d %d", static_cast<int>(result), count);
  for (int i = 0; i < count; ++i) {
    CUuuid uuid;
    need("cuDeviceGetUuid", cuDeviceGetUuid(&uuid, i));
    std::printf(" ");
    for (const char byte : uuid.bytes) std::printf("%02x", static_cast<unsigned char>(byte));
  }
  std::printf("\n");
  return 0;
}

// 1000 allocations, one letter each: f failed, . did not.
int draw_failures() {
  use_device();
  std::string drawn;
  for (int i = 0; i < 1000; ++i) {
    CUdeviceptr p = 0;
    const bool failed = cuMemAlloc(&p, 256) != CUDA_SUCCESS;
    drawn += failed ? 'f' : '.';
    if (!failed) need("cuMemFree", cuMemFree(p));
  }
  say(drawn.c_str());
  return 0;
}

// What the driver needs to look after others is missing: it must not conclude from that.
[[noreturn]] int look_without_descriptors() {
  use_device();
  std::size_t free = 0, total = 0;
  CUdeviceptr too_much = 0;
  const auto look = [&] {
    need("cuMemGetInfo", cuMemGetInfo(&free, &total));
    (void)cuMemAlloc(&too_much, free + (1 << 20));
  };
  look();  // sanitizers need descriptors for what they see for the first time
  while (::dup(STDIN_FILENO) >= 0) {
  }
  look();
  say("looked");
  ::_exit(0);  // a leak checker needs descriptors
}

}  // namespace

int main(int count, char** arguments) {
  const std::string role = count > 1 ? arguments[1] : "";
  const auto megabytes = [&] { return std::strtoul(count > 2 ? arguments[2] : "1", nullptr, 10) << 20; };
  if (role == "hold" || role == "chunk") return hold(megabytes(), role == "chunk");
  if (role == "fork-hold") return fork_hold(megabytes());
  if (role == "churn") return churn();
  if (role == "write") return write_import();
  if (role == "import-dead") return import_later();
  if (role == "ipc" && count > 2) return open_ipc(arguments[2]);
  if (role == "stuck") return stay_stuck();
  if (role == "record" && count > 2) return record_and_stay(arguments[2]);
  if (role == "event" && count > 2) return wait_for_event(arguments[2]);
  if (role == "print") return print_into_nothing();
  if (role == "devices") return list_devices();
  if (role == "draws") return draw_failures();
  if (role == "blind") return look_without_descriptors();
  if (role == "counts") {
    use_device();
    CUarray array{};
    CUDA_ARRAY_DESCRIPTOR descriptor{};
    return cuArrayCreate(&array, &descriptor) == CUDA_ERROR_NOT_SUPPORTED ? 0 : 5;
  }
  std::fprintf(stderr, "simgpu_child: unknown role \"%s\"\n", role.c_str());
  return 2;
}
