#include <dlfcn.h>

#include <cstring>

#include "shim/hook/libc.hpp"
#include "shim/hook/loaded_object.hpp"
#include "tests/support/catch.hpp"

using namespace vramd::shim::hook;

namespace {

bool is_libc(const LoadedObject& object) { return std::strcmp(object.soname(), "libc.so.6") == 0; }
bool is_nothing(const LoadedObject&) { return false; }

LoadedObject named(const char* path) {
  static const ElfW(Dyn) end{};  // DT_NULL: no SONAME
  return {1, &end, path};
}

}  // namespace

TEST_CASE("A function is found in the tables of a loaded library, in its default version") {
  const LoadedObject found = find_loaded(&is_libc);
  REQUIRE(found);
  void* libc_itself = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);  // sanitizers replace functions in the global scope
  REQUIRE(libc_itself != nullptr);
  CHECK(found.function("getenv") == dlsym(libc_itself, "getenv"));
  CHECK(found.function("pthread_cond_wait") == dlsym(libc_itself, "pthread_cond_wait"));  // has an older version too
  CHECK(found.function("no_such_function") == nullptr);
  CHECK(found.function("") == nullptr);
  CHECK_FALSE(find_loaded(&is_nothing));
}

TEST_CASE("The C library's own loader functions work") {
  const Libc functions = libc();
  void* self = functions.dlopen(nullptr, RTLD_NOW);
  REQUIRE(self != nullptr);
  CHECK(functions.dlsym(self, "getenv") == dlsym(RTLD_DEFAULT, "getenv"));
  Dl_info info{};
  void* map = nullptr;
  CHECK(functions.dladdr1(functions.dlsym(self, "getenv"), &info, &map, RTLD_DL_LINKMAP) != 0);
  CHECK(map != nullptr);
}

TEST_CASE("A driver library is told by its name, its helpers too") {
  for (const char* path : {"/usr/lib/libcuda.so.1", "libcuda.so", "./libcuda.so.580.65.06"}) {
    CHECK(is_driver_library(named(path)));
    CHECK(is_driver_or_helper(named(path)));
  }
  for (const char* path : {"", "/usr/lib/libcudart.so.13", "/libcuda.so.1/libfoo.so", "libcudadebugger.so.1", "cuda"}) {
    CHECK_FALSE(is_driver_library(named(path)));
    CHECK_FALSE(is_driver_or_helper(named(path)));
  }
  CHECK_FALSE(is_driver_library(named("/usr/lib/libnvidia-ptxjitcompiler.so.1")));
  CHECK(is_driver_or_helper(named("/usr/lib/libnvidia-ptxjitcompiler.so.1")));
}
