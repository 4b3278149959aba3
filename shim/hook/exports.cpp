#include "shim/hook/exports.hpp"

namespace {

constexpr std::size_t kTrampolineBytes = 32;  // as in trampolines_x86_64.S

}  // namespace

// The first trampoline; the others follow in the order of Entry. Weak: absent without trampolines_x86_64.S.
extern "C" [[gnu::weak, gnu::visibility("hidden")]] const unsigned char vramd_trampolines[];

namespace vramd::shim::hook {

void* export_of(Entry entry) {
  if (vramd_trampolines == nullptr) return nullptr;
  return const_cast<unsigned char*>(vramd_trampolines) + index_of(entry) * kTrampolineBytes;
}

}  // namespace vramd::shim::hook
