// The driver's exported functions as numbers: Entry::cuMemAlloc_v2 names one ABI in one stream flavour, for
// good. Everything is constant data without relocations: a preloaded library must cost nothing where it is
// not used.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "Compile with -D__CUDA_API_VERSION_INTERNAL (target vramd_shim does): cuda.h renames functions otherwise"
#endif
#include <cuda.h>
#if __has_include(<cudaProfiler.h>)
#include <cudaProfiler.h>
#endif

#include <cstddef>
#include <cstdint>
#include <optional>

namespace vramd::shim::hook {

enum class Entry : std::uint16_t {
#define ENTRY(name) name,
#include "shim/hook/generated/entries.inc"
#undef ENTRY
};

inline constexpr std::size_t kEntryCount = 0
#define ENTRY(name) +1
#include "shim/hook/generated/entries.inc"
#undef ENTRY
    ;

constexpr std::size_t index_of(Entry entry) { return static_cast<std::size_t>(entry); }

// The function type that cuda.h declares for an entry, as a pointer.
template <Entry entry>
struct Signature;
#define ENTRY(name)                 \
  template <>                       \
  struct Signature<Entry::name> {   \
    using Type = decltype(&::name); \
  };
#include "shim/hook/generated/entries.inc"
#undef ENTRY

// Exact match only: cudaMalloc, cudnnCreate and cublasCreate begin with "cu" too.
std::optional<Entry> find_entry(const char* exported_name);

const char* name_of(Entry entry);

}  // namespace vramd::shim::hook
