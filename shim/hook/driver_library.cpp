#include "shim/hook/driver_library.hpp"

#include <atomic>

#include "shim/hook/libc.hpp"
#include "shim/hook/loaded_object.hpp"
#include "shim/hook/process.hpp"

namespace vramd::shim::hook {
namespace {

constexpr const char* kDriverName = "libcuda.so.1";

CUresult refuse_without_driver() { return CUDA_ERROR_NO_DEVICE; }
CUresult refuse_unknown_name() { return CUDA_ERROR_NOT_FOUND; }

// The driver: unknown (nullptr) -> found. There is no way back, and no state "failed": a library may appear
// later. The reference is never given back, so its functions stay valid.
constinit std::atomic<link_map*> g_driver{nullptr};
constinit std::atomic<void* (*)(const char*)> g_resolve{nullptr};
constinit std::atomic<void*> g_real[kEntryCount];

LoadedObject as_object(const link_map* map) { return {map->l_addr, map->l_ld, map->l_name}; }

link_map* owner_of(const void* function) {
  Dl_info info;
  void* map = nullptr;
  if (libc().dladdr1(function, &info, &map, RTLD_DL_LINKMAP) == 0) return nullptr;
  return static_cast<link_map*>(map);
}

// The first one wins; the loser's extra reference to a library does no harm.
link_map* adopt(link_map* candidate) {
  link_map* expected = nullptr;
  return g_driver.compare_exchange_strong(expected, candidate) ? candidate : expected;
}

// A handle of glibc is the address of the link_map.
link_map* open(const char* path, int flags) { return static_cast<link_map*>(libc().dlopen(path, flags)); }

link_map* driver() {
  link_map* known = g_driver.load(std::memory_order_acquire);  // matched by the exchange in adopt()
  if (known != nullptr) return known;

  const OwnCall own_call;  // the driver's constructors look names up
  link_map* opened = nullptr;
  if (const LoadedObject loaded = find_loaded(&is_driver_library)) opened = open(loaded.path(), RTLD_NOW | RTLD_NOLOAD);
  if (opened == nullptr) opened = open(kDriverName, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr || !is_driver_library(as_object(opened))) return nullptr;
  return adopt(opened);
}

void* look_up(const char* exported_name) {
  if (auto* resolve = g_resolve.load(std::memory_order_acquire)) return resolve(exported_name);
  link_map* library = driver();
  if (library == nullptr) return nullptr;
  const OwnCall own_call;
  return libc().dlsym(library, exported_name);
}

bool driver_present() { return g_resolve.load(std::memory_order_acquire) != nullptr || driver() != nullptr; }

}  // namespace

void* real_or_refusal(Entry entry) {
  void* known = g_real[index_of(entry)].load(std::memory_order_relaxed);
  if (known != nullptr) [[likely]]
    return known;
  if (void* found = look_up(name_of(entry))) {
    remember(entry, found);
    return found;
  }
  return reinterpret_cast<void*>(driver_present() ? &refuse_unknown_name : &refuse_without_driver);
}

void* real_entry(const char* exported_name) { return look_up(exported_name); }

bool belongs_to_driver(const void* function) {
  link_map* owner = owner_of(function);
  if (owner == nullptr) return false;
  link_map* known = g_driver.load(std::memory_order_acquire);
  if (known != nullptr) return owner == known;
  if (!is_driver_library(as_object(owner))) return false;
  const OwnCall own_call;
  // Ours is the namespace that this open searches: another map under the same path is a copy elsewhere.
  link_map* pinned = open(owner->l_name, RTLD_NOW | RTLD_NOLOAD);
  return pinned == owner && adopt(pinned) == owner;
}

void remember(Entry entry, void* function) {
  void* expected = nullptr;
  g_real[index_of(entry)].compare_exchange_strong(expected, function, std::memory_order_relaxed);
}

bool is_export(Entry entry, const void* function) { return look_up(name_of(entry)) == function; }

void use_driver(void* (*resolve)(const char* exported_name)) { g_resolve.store(resolve, std::memory_order_release); }

}  // namespace vramd::shim::hook
