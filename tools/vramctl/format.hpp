// Numbers for people.
#pragma once

#include <cstdint>
#include <string>

namespace vramd::ctl {

std::string size_text(std::uint64_t bytes);         // "0 B", "512 KiB", "1.50 GiB"; steps of 1024
std::string duration_text(std::uint64_t seconds);   // "42 s", "3 h 12 min", "5 d 2 h"
std::string shell_quoted(const std::string& text);  // as one word of a POSIX shell

}  // namespace vramd::ctl
