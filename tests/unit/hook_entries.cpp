#include <set>
#include <string>

#include "shim/hook/abis.hpp"
#include "shim/hook/entries.hpp"
#include "shim/hook/doors.hpp"
#include "tests/support/catch.hpp"

using namespace vramd::shim::hook;

namespace {

constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

std::string selected(const char* base, int version, cuuint64_t flags = 0) {
  const auto entry = select_abi(base, version, flags);
  return entry ? name_of(*entry) : "none";
}

}  // namespace

TEST_CASE("Every exported driver name is found under its own number, and nothing else is") {
  CHECK(kEntryCount > 500);
  for (std::size_t i = 0; i < kEntryCount; ++i) {
    const auto entry = static_cast<Entry>(i);
    REQUIRE(find_entry(name_of(entry)) == entry);
    REQUIRE(find_entry((std::string(name_of(entry)) + "_").c_str()) == std::nullopt);
  }
  for (const char* name : {"", "cu", "cudaMalloc", "cudnnCreate", "cublasCreate_v2", "zzz", "A"}) {
    CHECK(find_entry(name) == std::nullopt);
  }
}

TEST_CASE("A query selects the greatest ABI that is not above the requested version") {
  CHECK(selected("cuMemAlloc", 1999) == "none");
  CHECK(selected("cuMemAlloc", 2000) == "cuMemAlloc");
  CHECK(selected("cuMemAlloc", 3019) == "cuMemAlloc");
  CHECK(selected("cuMemAlloc", 3020) == "cuMemAlloc_v2");
  CHECK(selected("cuMemAlloc", 13000) == "cuMemAlloc_v2");
  CHECK(selected("cuDevicePrimaryCtxReset", 10999) == "cuDevicePrimaryCtxReset");
  CHECK(selected("cuDevicePrimaryCtxReset", 11000) == "cuDevicePrimaryCtxReset_v2");
  CHECK(selected("cuGetProcAddress", 11030) == "cuGetProcAddress");
  CHECK(selected("cuGetProcAddress", 12000) == "cuGetProcAddress_v2");
  CHECK(selected("cuNoSuchFunction", 13000) == "none");
}

TEST_CASE("The per-thread-stream form is selected where it is asked for and exists") {
  CHECK(selected("cuStreamBeginCapture", 10000) == "cuStreamBeginCapture");
  CHECK(selected("cuStreamBeginCapture", 10000, kPerThread) == "cuStreamBeginCapture_ptsz");
  CHECK(selected("cuStreamBeginCapture", 12000, kPerThread) == "cuStreamBeginCapture_v2_ptsz");
  CHECK(selected("cuStreamBeginCapture", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM) == "cuStreamBeginCapture_v2");
  CHECK(selected("cuMemAlloc", 12000, kPerThread) == "cuMemAlloc_v2");
}

TEST_CASE("Hooked are the functions of hooked.def and submission.def and the two queries") {
  std::set<std::string> expected = {"cuGetProcAddress", "cuGetProcAddress_v2"};
#define HOOK(name) expected.insert(#name);
#define SUBMIT(name, kind) expected.insert(#name);
#define SUBMIT_HOOK(name, kind) expected.insert(#name);
#include "shim/hook/generated/hooked.inc"
#include "shim/hook/generated/submissions.inc"
#undef HOOK
#undef SUBMIT
#undef SUBMIT_HOOK
  std::set<std::string> hooked;
  for (std::size_t i = 0; i < kEntryCount; ++i) {
    const auto entry = static_cast<Entry>(i);
    if (is_hooked(entry)) hooked.insert(name_of(entry));
  }
  CHECK(hooked == expected);
  CHECK_FALSE(is_hooked(Entry::cuGetExportTable));
}
