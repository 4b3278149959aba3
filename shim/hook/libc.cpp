#include "shim/hook/libc.hpp"

#include <atomic>

#include "shim/hook/loaded_object.hpp"
#include "shim/hook/text.hpp"

namespace vramd::shim::hook {
namespace {

bool defines_dlsym(const LoadedObject& object) {
  const char* soname = object.soname();
  if (!same_text(soname, "libc.so.6") && !same_text(soname, "libdl.so.2")) return false;
  return object.function("dlsym") != nullptr;
}

void* find_nothing(void*, const char*) { return nullptr; }
void* find_nothing_versioned(void*, const char*, const char*) { return nullptr; }
void* open_nothing(const char*, int) { return nullptr; }
int know_nothing(const void*, Dl_info*, void**, int) { return 0; }

template <class Function>
void take(Function*& target, void* found) {
  if (found != nullptr) target = reinterpret_cast<Function*>(found);
}

Libc find_libc() {
  Libc result{&find_nothing, &find_nothing_versioned, &open_nothing, &know_nothing};
  LoadedObject object = find_listed(&defines_dlsym);
  if (!object) object = find_loaded(&defines_dlsym);
  if (!object) return result;
  take(result.dlsym, object.function("dlsym"));
  take(result.dlvsym, object.function("dlvsym"));
  take(result.dlopen, object.function("dlopen"));
  take(result.dladdr1, object.function("dladdr1"));
  // RTLD_NEXT in a call from here means: the next definition after ours. dlsym, since dlvsym passes
  // unversioned ones over.
  Dlsym* const genuine = result.dlsym;
  take(result.dlsym, genuine(RTLD_NEXT, "dlsym"));
  take(result.dlvsym, genuine(RTLD_NEXT, "dlvsym"));
  return result;
}

// No lock and no once-flag: threads that come at the same time find and write the same values.
struct Published {
  std::atomic<bool> complete{false};
  std::atomic<Dlsym*> dlsym{nullptr};
  std::atomic<Dlvsym*> dlvsym{nullptr};
  std::atomic<Dlopen*> dlopen{nullptr};
  std::atomic<Dladdr1*> dladdr1{nullptr};
};

constinit Published g_published;

void publish(const Libc& found) {
  g_published.dlsym.store(found.dlsym, std::memory_order_relaxed);
  g_published.dlvsym.store(found.dlvsym, std::memory_order_relaxed);
  g_published.dlopen.store(found.dlopen, std::memory_order_relaxed);
  g_published.dladdr1.store(found.dladdr1, std::memory_order_relaxed);
  g_published.complete.store(true, std::memory_order_release);  // matched by the acquire in libc()
}

}  // namespace

Libc libc() {
  if (!g_published.complete.load(std::memory_order_acquire)) {
    const Libc found = find_libc();
    if (found.dlsym != &find_nothing) publish(found);  // else look again next time
    return found;
  }
  return {g_published.dlsym.load(std::memory_order_relaxed), g_published.dlvsym.load(std::memory_order_relaxed),
          g_published.dlopen.load(std::memory_order_relaxed), g_published.dladdr1.load(std::memory_order_relaxed)};
}

}  // namespace vramd::shim::hook
