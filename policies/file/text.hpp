// Small helpers about text: positions, quoting for messages, and "did you mean".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "policies/file/document.hpp"

namespace vramd::policy {

// Turns offsets into positions. Offsets must not decrease from call to call: the text is walked once.
class LineCounter {
 public:
  explicit LineCounter(std::string_view text) : text_(text) {}
  Position at(std::size_t offset);

 private:
  std::string_view text_;
  std::size_t seen_ = 0;
  Position position_;
};

// Printable and of bounded length: control characters and broken UTF-8 as \xNN, text of more than about `most` bytes cut with
// "...".
std::string printable(std::string_view text, std::size_t most = 60);
std::string in_quotes(std::string_view text);  // printable, in double quotes

// Number of the first byte that is not valid UTF-8, or npos.
std::size_t first_invalid_utf8(std::string_view text);

// The candidate within two edits (insert, delete, replace, swap neighbours) of `word`, or empty.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// "a", "b" or "c"
std::string one_of(std::span<const std::string_view> choices);

}  // namespace vramd::policy
