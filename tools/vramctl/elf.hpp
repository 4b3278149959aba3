// The few facts about an ELF file that decide whether a preloaded library can work in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vramd::ctl {

struct ElfFacts {
  bool is_64_bit = false;
  std::uint16_t machine = 0;       // EM_X86_64 and so on
  std::string interpreter;         // PT_INTERP: the dynamic linker, which is what obeys LD_PRELOAD; "" = none
  bool is_shared_library = false;  // ET_DYN
  std::string newest_glibc;        // highest GLIBC_x.y that it needs, "" = none; only of files of our own class
};

// Empty when the file cannot be read or is no ELF. Nothing in the file is trusted: offsets are checked.
std::optional<ElfFacts> read_elf(const std::string& path);

std::uint16_t own_machine();

// Compares "2.31" and "2.4" as versions.
bool version_less(const std::string& a, const std::string& b);

}  // namespace vramd::ctl
