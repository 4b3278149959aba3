#include "shim/hook/entries.hpp"

#include <cstring>

namespace vramd::shim::hook {
namespace {

// One string and offsets into it instead of an array of pointers, which the loader would have to relocate in
// every process.
constexpr char kNames[] =
#define ENTRY(name) #name "\0"
#include "shim/hook/generated/entries.inc"
#undef ENTRY
    ;

struct Offsets {
  std::uint16_t of[kEntryCount];
};

constexpr Offsets find_offsets() {
  static_assert(sizeof(kNames) <= UINT16_MAX);
  Offsets offsets{};
  std::size_t position = 0;
  for (std::uint16_t& offset : offsets.of) {
    offset = static_cast<std::uint16_t>(position);
    while (kNames[position] != '\0') ++position;
    ++position;
  }
  return offsets;
}

constexpr Offsets kOffsets = find_offsets();

}  // namespace

const char* name_of(Entry entry) { return kNames + kOffsets.of[index_of(entry)]; }

std::optional<Entry> find_entry(const char* exported_name) {
  std::size_t low = 0;
  std::size_t high = kEntryCount;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const int order = std::strcmp(exported_name, kNames + kOffsets.of[middle]);
    if (order == 0) return static_cast<Entry>(middle);
    if (order < 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return std::nullopt;
}

}  // namespace vramd::shim::hook
