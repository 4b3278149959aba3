#include "tools/vramctl/format.hpp"

#include <cstdio>
#include <iterator>
#include <string_view>

namespace vramd::ctl {

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.995 would be printed as 1024.00.
  for (; value >= 1023.995 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.2f", value);
  std::string text = digits;
  if (text.ends_with(".00")) text.resize(text.size() - 3);
  return text + ' ' + kUnits[unit];
}

std::string duration_text(std::uint64_t seconds) {
  const auto two = [](std::uint64_t large, const char* large_unit, std::uint64_t small, const char* small_unit) {
    return std::to_string(large) + ' ' + large_unit + ' ' + std::to_string(small) + ' ' + small_unit;
  };
  const std::uint64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
  if (minutes == 0) return std::to_string(seconds) + " s";
  if (hours == 0) return two(minutes, "min", seconds % 60, "s");
  if (days == 0) return two(hours, "h", minutes % 60, "min");
  return two(days, "d", hours % 24, "h");
}

std::string shell_quoted(const std::string& text) {
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!text.empty() && text.find_first_not_of(kSafe) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace vramd::ctl
