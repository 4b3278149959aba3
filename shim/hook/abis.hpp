// What a program means when it asks cuGetProcAddress for (base name, version, flags).
#pragma once

#include <optional>

#include "shim/hook/entries.hpp"

namespace vramd::shim::hook {

// The greatest known ABI not above `version`; of the per-thread-stream forms if `flags` asks for them and
// there is one. Knows the bases of hooked functions only. Empty: nothing of that base is hooked, or
// even its oldest ABI is younger.
std::optional<Entry> select_abi(const char* base, int version, cuuint64_t flags);

struct Abi {
  const char* base;
  int version;
  bool per_thread;
  Entry entry;
};

// The row after `previous` with this base; nullptr starts, nullptr ends.
const Abi* next_abi(const char* base, const Abi* previous);

// Whether `matches(entry)` for some ABI of `base`.
template <class Matches>
bool any_abi(const char* base, Matches&& matches) {
  for (const Abi* abi = next_abi(base, nullptr); abi != nullptr; abi = next_abi(base, abi)) {
    if (matches(abi->entry)) return true;
  }
  return false;
}

}  // namespace vramd::shim::hook
