// How a program's look-ups of driver functions are answered. Runs on the simulated driver with libvramd.so
// preloaded.
#include <cuda.h>
#include <link.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>

#include "tests/integration/hook_support.hpp"
#include "tests/support/catch.hpp"

using namespace vramd::testing;

namespace {

using Query = CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
using QueryOf11 = CUresult(const char*, void**, int, cuuint64_t);

void* driver() {
  static void* handle = open_library("libcuda.so.1");
  return handle;
}

template <class Function>
Function* look_up(void* handle, const char* name) {
  return reinterpret_cast<Function*>(dlsym(handle, name));
}

Query* hooked_query() { return look_up<Query>(driver(), "cuGetProcAddress_v2"); }
Query* untouched_query() { return reinterpret_cast<Query*>(untouched_dlsym(driver(), "cuGetProcAddress_v2")); }

// The driver's export at an address -> its name.
const std::map<void*, std::string>& exports_of_driver() {
  static const auto names = [] {
    std::map<void*, std::string> result;
    for (const std::string& name : driver_names()) {
      if (void* address = untouched_dlsym(driver(), name.c_str())) result.emplace(address, name);
    }
    return result;
  }();
  return names;
}

// What the program shall get where the driver alone answers `answer`: ours if that export is hooked.
void* expected_for(void* answer) {
  const auto found = exports_of_driver().find(answer);
  if (found == exports_of_driver().end() || !hooked_names().contains(found->second)) return answer;
  return exported_by_shim(found->second);
}

struct Row {
  std::string name;
  int version;
  cuuint64_t flags;
};

std::vector<Row> rows_of_cudart() {
  std::ifstream file(HOOK_LOOKUPS_FILE);
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Row row;
    if (line.starts_with('#') || !(words >> row.name >> row.version >> row.flags)) continue;
    if (row.name == "\"\"") row.name.clear();
    rows.push_back(row);
  }
  return rows;
}

void check_query(const Row& row) {
  INFO(row.name << " version " << row.version << " flags " << row.flags);
  void* plain = nullptr;
  void* hooked = nullptr;
  CUdriverProcAddressQueryResult plain_status{};
  CUdriverProcAddressQueryResult hooked_status{};
  const CUresult plain_result = untouched_query()(row.name.c_str(), &plain, row.version, row.flags, &plain_status);
  const CUresult hooked_result = hooked_query()(row.name.c_str(), &hooked, row.version, row.flags, &hooked_status);
  CHECK(hooked_result == plain_result);
  CHECK(hooked_status == plain_status);
  CHECK(hooked == (plain_result == CUDA_SUCCESS ? expected_for(plain) : plain));
}

}  // namespace

TEST_CASE("The hook is active and the oracle is not hooked") {
  CHECK(file_of(exported_by_shim("dlsym")) == "libvramd.so");
  CHECK(file_of(reinterpret_cast<void*>(hooked_query())) == "libvramd.so");
  CHECK(file_of(reinterpret_cast<void*>(untouched_query())) == "libcuda.so.1");
}

TEST_CASE("dlsym answers hooked names with ours and all others with the driver's") {
  for (const std::string& name : driver_names()) {
    INFO(name);
    void* plain = untouched_dlsym(driver(), name.c_str());
    void* answer = dlsym(driver(), name.c_str());
    if (plain != nullptr && hooked_names().contains(name)) {
      CHECK(answer == exported_by_shim(name));
    } else {
      CHECK(answer == plain);
    }
  }
}

TEST_CASE("The driver is recognised under every name it is opened by") {
  for (const char* path : {"libcuda.so.1", HOOK_DRIVER, HOOK_DRIVER_LINK}) {
    INFO(path);
    void* handle = open_library(path);
    CHECK(file_of(dlsym(handle, "cuMemAlloc_v2")) == "libvramd.so");
    CHECK(dlsym(handle, "cuDeviceGet") == untouched_dlsym(driver(), "cuDeviceGet"));
  }
}

TEST_CASE("dlvsym answers as dlsym does where the driver has the version") {
  // The driver's names carry no version of ours; what the C library does not find stays not found.
  for (const char* version : {"libcuda.so.1", "GLIBC_2.2.5", "nonsense"}) {
    INFO(version);
    void* plain = untouched_dlvsym(driver(), "cuMemAlloc_v2", version);
    CHECK(dlvsym(driver(), "cuMemAlloc_v2", version) == (plain == nullptr ? nullptr : exported_by_shim("cuMemAlloc_v2")));
  }
  CHECK(dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.14") == untouched_dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.14"));
}

TEST_CASE("A name that only begins like a driver function is none") {
  CHECK(dlsym(driver(), "cudaMalloc") == nullptr);
  CHECK(dlsym(driver(), "cudnnCreate") == nullptr);
  CHECK(dlsym(driver(), "cuMemAlloc_v2_") == nullptr);
  CHECK(dlsym(driver(), "cu") == nullptr);
  CHECK(dlsym(driver(), "") == untouched_dlsym(driver(), ""));
}

TEST_CASE("A failed look-up leaves the loader's message as without the hook") {
  dlerror();
  REQUIRE(dlsym(driver(), "cuNoSuchFunction") == nullptr);
  const char* message = dlerror();
  REQUIRE(message != nullptr);
  CHECK(std::string(message).find("cuNoSuchFunction") != std::string::npos);
  REQUIRE(dlsym(driver(), "cuDeviceGet") != nullptr);
  CHECK(dlerror() == nullptr);
}

TEST_CASE("RTLD_DEFAULT and the program's own handle find the exported functions") {
  void* self = open_library(nullptr);
  for (const char* name : {"cuInit", "cuMemAlloc_v2", "cuDeviceGet"}) {
    CHECK(file_of(dlsym(RTLD_DEFAULT, name)) == "libvramd.so");
    CHECK(dlsym(self, name) == dlsym(RTLD_DEFAULT, name));
  }
}

TEST_CASE("Every query of NVIDIA's runtime gets our wrapper of the right ABI or the driver's pointer") {
  const std::vector<Row> rows = rows_of_cudart();
  REQUIRE(rows.size() == 440);
  for (const Row& row : rows) check_query(row);
}

TEST_CASE("Versions between, below and above the known ones select as the driver does") {
  for (const Row& row : rows_of_cudart()) {
    for (const int version : {0, 1, row.version - 1, row.version + 1, 2000, 3019, 3020, 7000, 10000, 10010, 11000, 12000, 12030,
                              CUDA_VERSION - 1, CUDA_VERSION, CUDA_VERSION + 1, 99999}) {
      for (const cuuint64_t flags : {0U, 1U, 2U}) check_query({row.name, version, flags});
    }
  }
}

TEST_CASE("cuGetProcAddress hands out itself in the ABI of the requested version") {
  void* newer = nullptr;
  void* older = nullptr;
  REQUIRE(hooked_query()("cuGetProcAddress", &newer, 12000, 0, nullptr) == CUDA_SUCCESS);
  REQUIRE(hooked_query()("cuGetProcAddress", &older, 11030, 0, nullptr) == CUDA_SUCCESS);
  CHECK(newer == exported_by_shim("cuGetProcAddress_v2"));
  CHECK(older == exported_by_shim("cuGetProcAddress"));

  void* found = nullptr;
  REQUIRE(reinterpret_cast<QueryOf11*>(older)("cuMemAlloc", &found, 3020, 0) == CUDA_SUCCESS);
  CHECK(found == exported_by_shim("cuMemAlloc_v2"));
}

TEST_CASE("A query that the driver refuses is refused alike") {
  void* found = reinterpret_cast<void*>(1);
  void* plain = found;
  CHECK(hooked_query()(nullptr, &found, 12000, 0, nullptr) == untouched_query()(nullptr, &plain, 12000, 0, nullptr));
  CHECK(found == plain);
  CHECK(hooked_query()("cuMemAlloc", nullptr, 12000, 0, nullptr) ==
        untouched_query()("cuMemAlloc", nullptr, 12000, 0, nullptr));
}

TEST_CASE("What is handed out is counted") {
  const vramd_hook_counts before = hook_counts();
  void* found = nullptr;
  dlsym(driver(), "cuMemFree_v2");
  dlsym(driver(), "cuDeviceGet");
  hooked_query()("cuMemFree", &found, 3020, 0, nullptr);
  hooked_query()("cuDeviceGet", &found, 2000, 0, nullptr);
  const vramd_hook_counts after = hook_counts();
  CHECK(after.lookups - before.lookups == 3);  // cuMemFree_v2, and twice the query function
  CHECK(after.lookup_replacements - before.lookup_replacements == 3);
  CHECK(after.queries - before.queries == 2);
  CHECK(after.query_replacements - before.query_replacements == 1);
}

TEST_CASE("Memory is allocated and freed through what was handed out") {
  void* init = dlsym(driver(), "cuInit");
  REQUIRE(reinterpret_cast<CUresult (*)(unsigned)>(init)(0) == CUDA_SUCCESS);
  CUdevice device = -1;
  CUcontext context = nullptr;
  REQUIRE(look_up<CUresult(CUdevice*, int)>(driver(), "cuDeviceGet")(&device, 0) == CUDA_SUCCESS);
  REQUIRE(look_up<CUresult(CUcontext*, CUdevice)>(driver(), "cuDevicePrimaryCtxRetain")(&context, device) == CUDA_SUCCESS);
  REQUIRE(look_up<CUresult(CUcontext)>(driver(), "cuCtxSetCurrent")(context) == CUDA_SUCCESS);

  void* allocate = nullptr;
  void* release = nullptr;
  REQUIRE(hooked_query()("cuMemAlloc", &allocate, 12000, 0, nullptr) == CUDA_SUCCESS);
  REQUIRE(hooked_query()("cuMemFree", &release, 12000, 0, nullptr) == CUDA_SUCCESS);
  CUdeviceptr address = 0;
  REQUIRE(reinterpret_cast<CUresult (*)(CUdeviceptr*, size_t)>(allocate)(&address, 1 << 20) == CUDA_SUCCESS);
  CHECK(address != 0);
  CHECK(reinterpret_cast<CUresult (*)(CUdeviceptr)>(release)(address) == CUDA_SUCCESS);
  CHECK(look_up<CUresult(CUdevice)>(driver(), "cuDevicePrimaryCtxRelease_v2")(device) == CUDA_SUCCESS);
}

TEST_CASE("A second copy of the driver, in another namespace, is left alone") {
  REQUIRE(file_of(dlsym(driver(), "cuInit")) == "libvramd.so");
  void* other = dlmopen(LM_ID_NEWLM, HOOK_DRIVER, RTLD_NOW | RTLD_LOCAL);
  if (other == nullptr) {
    WARN("dlmopen is not possible here: " << dlerror());
    return;
  }
  void* found = dlsym(other, "cuInit");
  CHECK(found != nullptr);
  CHECK(found == untouched_dlsym(other, "cuInit"));
  CHECK(found != untouched_dlsym(driver(), "cuInit"));
}
