// Why a text is no JSON, in words for the person who wrote it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vramd::policy {

// What the grammar allows at a place.
enum class Expected : std::uint8_t {
  value,           // after ':', or at the start of the text
  first_item,      // a value or ']'
  item_separator,  // ',' or ']'
  first_key,       // a key or '}'
  colon,           // after a key
  separator,       // ',' or '}'
  nothing          // after the end of the outermost value
};

struct SyntaxProblem {
  std::size_t offset;
  std::string what, instead;
};

// Offset of the first byte at or after `from` that is neither white space nor part of a comment.
std::size_t skip_blank(std::string_view text, std::size_t from);

// `from`: the end of the last good token. `open_line`: where the innermost open '{' or '[' stands, 0 when
// none is open.
SyntaxProblem explain_syntax(std::string_view text, std::size_t from, Expected expected, int open_line);

}  // namespace vramd::policy
