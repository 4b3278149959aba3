// A shared object that the dynamic loader has loaded, read from its own headers: no dlsym, no allocation.
// Valid while the object stays loaded.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

namespace vramd::shim::hook {

class LoadedObject {
 public:
  LoadedObject() = default;
  // `dynamic` is the object's PT_DYNAMIC in memory; `path` may be empty (the main program).
  LoadedObject(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char* path);

  explicit operator bool() const { return dynamic_ != nullptr; }
  const char* path() const { return path_; }
  const char* soname() const;  // "" if it has none
  ElfW(Addr) base() const { return base_; }

  // The default version of a function that this very object defines; nullptr if it defines none.
  void* function(const char* name) const;

 private:
  template <class T>
  T table(ElfW(Addr) address) const;

  ElfW(Addr) base_ = 0;
  const ElfW(Dyn) * dynamic_ = nullptr;
  const char* path_ = "";
  const char* strings_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const ElfW(Half) * versions_ = nullptr;  // nullptr: the object has no symbol versions
  const std::uint32_t* gnu_hash_ = nullptr;
  ElfW(Xword) soname_offset_ = 0;
};

// The first loaded object of our namespace for which `matches` holds; an empty one if there is none.
LoadedObject find_loaded(bool (*matches)(const LoadedObject& object));

// The same without a function of the C library that others take over: dl_iterate_phdr() is one. Takes no lock, so it is for
// what was loaded with the program. Nothing where the main program has no DT_DEBUG.
LoadedObject find_listed(bool (*matches)(const LoadedObject& object));

// Whether the object is a NVIDIA driver library by SONAME or file name: libcuda.so, libcuda.so.1,
// libcuda.so.580.65.06 ... False for ourselves, even where we are installed under that name.
bool is_driver_library(const LoadedObject& object);

// Whether it is the driver or one of its helpers (libnvidia-ptxjitcompiler.so.1 ...), whose own look-ups are
// none of ours.
bool is_driver_or_helper(const LoadedObject& object);

}  // namespace vramd::shim::hook
