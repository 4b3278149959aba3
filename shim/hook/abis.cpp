#include "shim/hook/abis.hpp"

#include <cstring>

namespace vramd::shim::hook {
namespace {

constexpr bool legacy = false;
constexpr bool per_thread = true;

constexpr Abi kAbis[] = {
#define ABI(base, version, flavour, name) {base, version, flavour, Entry::name},
#include "shim/hook/generated/abis.inc"
#undef ABI
};

}  // namespace

const Abi* next_abi(const char* base, const Abi* previous) {
  for (const Abi* abi = previous == nullptr ? kAbis : previous + 1; abi != kAbis + sizeof(kAbis) / sizeof(Abi); ++abi) {
    if (std::strcmp(abi->base, base) == 0) return abi;
  }
  return nullptr;
}

std::optional<Entry> select_abi(const char* base, int version, cuuint64_t flags) {
  const bool wants_per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const Abi* best = nullptr;
  for (const Abi* abi = next_abi(base, nullptr); abi != nullptr; abi = next_abi(base, abi)) {
    if (abi->version > version || (abi->per_thread && !wants_per_thread)) continue;
    const bool better = best == nullptr || abi->per_thread > best->per_thread ||
                        (abi->per_thread == best->per_thread && abi->version > best->version);
    if (better) best = abi;
  }
  if (best == nullptr) return std::nullopt;
  return best->entry;
}

}  // namespace vramd::shim::hook
