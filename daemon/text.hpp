// Builds messages from parts: text("pid ", 7, " left") == "pid 7 left".
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace vramd {

inline void append(std::string& out, std::string_view part) { out += part; }
inline void append(std::string& out, std::integral auto part) { out += std::to_string(part); }

template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (append(out, parts), ...);
  return out;
}

}  // namespace vramd
