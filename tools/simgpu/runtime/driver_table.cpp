#include "tools/simgpu/runtime/driver_table.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string_view>

namespace simgpu::runtime {
namespace {

struct Lookup {
  const char* name;
  int version;
  cuuint64_t flags;
};

constexpr Lookup kLookups[] = {
#include "lookups.inc"
};

constexpr int slot_of(const char* name, int version) {
  for (std::size_t i = 0; i < std::size(kLookups); ++i)
    if (kLookups[i].version == version && std::string_view(kLookups[i].name) == name) return static_cast<int>(i);
  return -1;
}
constexpr int kProcAddressSlot = slot_of("cuGetProcAddress", 12000);
constexpr int kInitSlot = slot_of("cuInit", 2000);
constexpr int kVersionSlot = slot_of("cuDriverGetVersion", 2020);
static_assert(kProcAddressSlot == 3 && kInitSlot > 0 && kVersionSlot > 0);

constexpr int kOldestDriver = 13000;

struct Table {
  std::array<void*, std::size(kLookups)> pointers{};
  PFN_cuGetProcAddress_v12000 ask = nullptr;
  int version = 0;
  CUresult state = CUDA_ERROR_NOT_FOUND;
};

// Written once under `once`, read-only afterwards.
Table table;
std::once_flag once;

void look_everything_up() {
  CUdriverProcAddressQueryResult status;
  for (std::size_t i = 0; i < std::size(kLookups); ++i) {
    const Lookup& lookup = kLookups[i];
    void* found = nullptr;
    if (table.ask(lookup.name, &found, lookup.version, lookup.flags, &status) != CUDA_SUCCESS) found = nullptr;
    table.pointers[i] = found;
    if (static_cast<int>(i) == kProcAddressSlot && found != nullptr)
      table.ask = reinterpret_cast<PFN_cuGetProcAddress_v12000>(found);
  }
}

void load() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return;
  table.ask = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(driver, "cuGetProcAddress_v2"));
  if (table.ask == nullptr) return;
  look_everything_up();
  const auto get_version = reinterpret_cast<PFN_cuDriverGetVersion_v2020>(table.pointers[kVersionSlot]);
  const auto initialise = reinterpret_cast<PFN_cuInit_v2000>(table.pointers[kInitSlot]);
  if (get_version == nullptr || initialise == nullptr || get_version(&table.version) != CUDA_SUCCESS) {
    table.version = 0;
    return;
  }
  if (table.version < kOldestDriver) return;
  table.state = initialise(0);
}

}  // namespace

CUresult load_driver() {
  std::call_once(once, load);
  return table.state;
}

int driver_version() {
  load_driver();
  return table.version;
}

void* looked_up(int slot) { return slot < 0 ? nullptr : table.pointers[static_cast<std::size_t>(slot)]; }

PFN_cuGetProcAddress_v12000 proc_address() { return table.ask; }

bool map_is_permuted() {
  static const bool permuted = [] {
    const char* map = std::getenv("SIM_RUNTIME_MAP");
    if (map == nullptr || *map == '\0' || std::strcmp(map, "standard") == 0) return false;
    if (std::strcmp(map, "permuted") == 0) return true;
    // Going on with another map than the one asked for would make a test pass that has not run.
    std::fprintf(stderr, "libcudart stand-in: SIM_RUNTIME_MAP=%s is not a map; write standard or permuted\n", map);
    std::abort();
  }();
  return permuted;
}

}  // namespace simgpu::runtime
