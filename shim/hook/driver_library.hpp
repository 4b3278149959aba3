// The one genuine driver of this process and its functions. All calls: any thread; no lock; a failure is
// tried again next time.
#pragma once

#include "shim/hook/entries.hpp"

namespace vramd::shim::hook {

// The driver's function. Where it is missing: a function that answers CUDA_ERROR_NO_DEVICE (no driver
// library, as cuInit does on a machine without GPU) or CUDA_ERROR_NOT_FOUND (the driver lacks the name).
// Never nullptr.
void* real_or_refusal(Entry entry);

// The driver's function by name, also one that our headers do not know; nullptr where it is missing.
void* real_entry(const char* exported_name);

// A call of the driver with the type that cuda.h gives it: real<Entry::cuMemFree_v2>()(address).
template <Entry entry>
typename Signature<entry>::Type real() {
  return reinterpret_cast<typename Signature<entry>::Type>(real_or_refusal(entry));
}

// The program found `function` under a hooked name. Returns whether it lies in this process' driver. The
// first genuine driver seen is it; a second copy (another file, or a namespace of dlmopen) is left alone,
// since handles do not mix.
bool belongs_to_driver(const void* function);

// The driver answered `function` for this ABI: wrappers call it from now on, unless one is known already.
void remember(Entry entry, void* function);

// Whether `function` is what the driver exports under this name.
bool is_export(Entry entry, const void* function);

// For programs that have driver and shim linked into them (sanitizer builds): `resolve` takes the place of
// the library.
void use_driver(void* (*resolve)(const char* exported_name));

}  // namespace vramd::shim::hook
