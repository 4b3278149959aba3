// cuGetProcAddress of the simulated driver against the exports and the rules of the header.
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include <string>

#include "tests/support/simgpu_machine.hpp"

static const OwnMachine machine("tiny-1g");

namespace {

constexpr int kNewest = 99000;

void* ask(const char* name, int version, cuuint64_t flags, CUdriverProcAddressQueryResult expected) {
  void* function = &function;
  CUdriverProcAddressQueryResult status{};
  const CUresult result = cuGetProcAddress(name, &function, version, flags, &status);
  CHECK(status == expected);
  CHECK(result == (expected == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND));
  return function;
}

void* exported(const char* name) {
  void* const symbol = dlsym(RTLD_DEFAULT, name);
  INFO(name);
  REQUIRE(symbol);
  return symbol;
}

}  // namespace

TEST_CASE("simgpu: every name and version of the table resolves to an export of that name") {
  int rows = 0;
#define ROW(name, version, flags, function)                                               \
  {                                                                                       \
    INFO(name << " " << version);                                                         \
    CHECK(ask(name, version, flags, CU_GET_PROC_ADDRESS_SUCCESS) == exported(#function)); \
    ++rows;                                                                               \
  }
#include "procs.inc"
#undef ROW
  CHECK(rows > 400);
}

TEST_CASE("simgpu: the youngest form not above the requested version is chosen") {
  CHECK(ask("cuCtxCreate", 3020, 0, CU_GET_PROC_ADDRESS_SUCCESS) == exported("cuCtxCreate_v2"));
  CHECK(ask("cuCtxCreate", 11030, 0, CU_GET_PROC_ADDRESS_SUCCESS) == exported("cuCtxCreate_v2"));
  CHECK(ask("cuCtxCreate", 11040, 0, CU_GET_PROC_ADDRESS_SUCCESS) == exported("cuCtxCreate_v3"));
  CHECK(ask("cuMemAlloc", kNewest, 0, CU_GET_PROC_ADDRESS_SUCCESS) == exported("cuMemAlloc_v2"));
  CHECK(ask("cuGetProcAddress", 11030, 0, CU_GET_PROC_ADDRESS_SUCCESS) == exported("cuGetProcAddress"));
  CHECK(ask("cuGetProcAddress", 12000, 0, CU_GET_PROC_ADDRESS_SUCCESS) == exported("cuGetProcAddress_v2"));
  CHECK(ask("cuMemCreate", 9000, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) == nullptr);
  CHECK(ask("cuMemNothing", kNewest, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == nullptr);
  CHECK(ask("", kNewest, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == nullptr);
}

TEST_CASE("simgpu: per-thread forms are given only to those who ask") {
  const auto per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  CHECK(ask("cuLaunchKernel", kNewest, per_thread, CU_GET_PROC_ADDRESS_SUCCESS) == exported("cuLaunchKernel_ptsz"));
  CHECK(ask("cuLaunchKernel", kNewest, 0, CU_GET_PROC_ADDRESS_SUCCESS) == exported("cuLaunchKernel"));
  CHECK(ask("cuMemAlloc", kNewest, per_thread, CU_GET_PROC_ADDRESS_SUCCESS) == exported("cuMemAlloc_v2"));
}

TEST_CASE("simgpu: stream 0 of a per-thread form is another stream than that of the plain form") {
  TestContext context;
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  CU_OK(cuGetProcAddress("cuStreamGetId", &function, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
  unsigned long long plain = 0, per_thread = 0;
  CU_OK(cuStreamGetId(nullptr, &plain));
  CU_OK(reinterpret_cast<CUresult (*)(CUstream, unsigned long long*)>(function)(nullptr, &per_thread));
  CHECK(plain != per_thread);
}

TEST_CASE("simgpu: a function that isn't implemented says so") {
  TestContext context;
  CUarray array{};
  CUDA_ARRAY_DESCRIPTOR descriptor{};
  CHECK(cuArrayCreate(&array, &descriptor) == CUDA_ERROR_NOT_SUPPORTED);
  const void* table = &array;
  const CUuuid id{};
  CHECK(cuGetExportTable(&table, &id) == CUDA_ERROR_NOT_SUPPORTED);
  expect_misuse({"unimplemented driver function called"});
}
