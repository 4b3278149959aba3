#include "policies/file/syntax.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include "policies/file/text.hpp"

namespace vramd::policy {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_number_start(char c) { return is_digit(c) || c == '-'; }

bool starts_value(char c) { return c == '"' || c == '{' || c == '[' || is_word(c) || c == '-' || c == '\''; }

std::string_view token_at(std::string_view text, std::size_t offset) {
  std::size_t end = offset;
  while (end < text.size() && (is_word(text[end]) || text[end] == '.' || text[end] == '+' || text[end] == '-')) ++end;
  return text.substr(offset, std::max<std::size_t>(end - offset, 1));
}

struct Spelling {
  std::string_view wrong, right;
};
constexpr std::array<Spelling, 8> kOtherLanguages{{{"True", "true"},
                                                   {"TRUE", "true"},
                                                   {"False", "false"},
                                                   {"FALSE", "false"},
                                                   {"None", "null"},
                                                   {"nil", "null"},
                                                   {"yes", "true"},
                                                   {"no", "false"}}};

// A string that starts at `offset` and that the reader refused.
SyntaxProblem explain_string(std::string_view text, std::size_t offset) {
  for (std::size_t at = offset + 1; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n' || c == '\r') return {offset, "the string has no end on its line", "close it with \""};
    if (static_cast<std::uint8_t>(c) < 0x20)
      return {at, "a control character in a string", "remove it, or write it as \\u00NN"};
    if (c == '"') break;
    if (c != '\\') continue;
    ++at;
    const char escape = at < text.size() ? text[at] : '\0';
    if (escape == 'u') {
      const std::string_view digits = text.substr(at + 1, 4);
      const bool good = digits.size() == 4 &&
                        std::all_of(digits.begin(), digits.end(), [](unsigned char d) { return std::isxdigit(d) != 0; });
      if (!good) return {at - 1, "\\u needs four hexadecimal digits", "write for example \\u00e9"};
    } else if (std::string_view("\"\\/bfnrt").find(escape) == std::string_view::npos || escape == '\0') {
      return {at - 1, "unknown escape " + in_quotes(text.substr(at - 1, 2)) + " in a string", "write \\\\ for a backslash"};
    }
  }
  const std::size_t end = text.find('"', offset + 1);
  if (end == std::string_view::npos) return {offset, "the string has no end", "close it with \""};
  const std::size_t broken = first_invalid_utf8(text.substr(offset, end - offset));
  if (broken != std::string_view::npos) return {offset + broken, "not valid UTF-8", "save the file as UTF-8"};
  return {offset, "a string that JSON does not allow", "check its \\u escapes: surrogates come in pairs"};
}

// A number with something stuck to its end, such as 01 or 12GiB. `start`: where the number stands.
SyntaxProblem explain_number(std::string_view text, std::size_t start) {
  const std::string token = printable(token_at(text, start));
  const bool unit = token.find_first_not_of("0123456789.+-") != std::string::npos;
  if (unit) return {start, token + " is no number", "put a size or a time in quotes: \"" + token + '"'};
  return {start, token + " is no number of JSON", "write digits without leading zeros or +, such as 0.5 or 12"};
}

SyntaxProblem explain_value(std::string_view text, std::size_t offset) {
  const char c = text[offset];
  const std::string_view token = token_at(text, offset);
  if (c == '"') return explain_string(text, offset);
  if (c == '\'') return {offset, "single quotes", "JSON strings stand in double quotes"};
  for (const Spelling& spelling : kOtherLanguages) {
    if (token == spelling.wrong)
      return {offset, "unknown word " + printable(token), "JSON uses " + std::string(spelling.right)};
  }
  if (c == '.' || c == '+' || is_number_start(c)) return explain_number(text, offset);
  if (is_word(c)) return {offset, "unknown word " + printable(token), "put text in double quotes"};
  return {offset, "unexpected " + in_quotes(token), "a value belongs here"};
}

SyntaxProblem explain_key(std::string_view text, std::size_t offset) {
  const char c = text[offset];
  if (c == '"') return explain_string(text, offset);
  if (c == '\'') return {offset, "single quotes", "JSON keys stand in double quotes"};
  const std::string_view token = token_at(text, offset);
  if (is_word(c)) return {offset, "the key " + printable(token) + " has no quotes", "write \"" + printable(token) + '"'};
  return {offset, "unexpected " + in_quotes(token), "a key in double quotes belongs here"};
}

bool is_unfinished_comment(std::string_view text, std::size_t offset) {
  return text.substr(std::min(offset, text.size())).starts_with("/*");
}

SyntaxProblem explain_end(std::size_t offset, int open_line) {
  if (open_line == 0) return {offset, "the file is empty", "the smallest policy is {\"version\": 1}"};
  return {offset, "the file ends too early", "close what line " + std::to_string(open_line) + " opens"};
}

}  // namespace

std::size_t skip_blank(std::string_view text, std::size_t from) {
  for (;;) {
    while (from < text.size() && std::string_view(" \t\r\n").find(text[from]) != std::string_view::npos) ++from;
    const std::string_view rest = text.substr(std::min(from, text.size()));
    if (rest.starts_with("//")) {
      from = std::min(text.find('\n', from), text.size());
    } else if (rest.starts_with("/*")) {
      const std::size_t end = text.find("*/", from + 2);
      if (end == std::string_view::npos) return from;  // a comment without an end is no blank
      from = end + 2;
    } else {
      return std::min(from, text.size());
    }
  }
}

SyntaxProblem explain_syntax(std::string_view text, std::size_t from, Expected expected, int open_line) {
  std::size_t offset = skip_blank(text, from);
  if (is_unfinished_comment(text, offset)) return {offset, "the comment has no end", "close it with */"};
  if (offset >= text.size()) return explain_end(text.size(), open_line);

  const bool in_object = expected == Expected::separator || expected == Expected::first_key;
  const bool after_item = expected == Expected::separator || expected == Expected::item_separator;
  if (expected == Expected::nothing) return {offset, "text after the end of the policy", "remove it: a file holds one { ... }"};
  if (expected == Expected::colon) {
    if (text[offset] != ':') return {offset, "no colon after a key", "write : between key and value"};
    offset = skip_blank(text, offset + 1);
  } else if (after_item) {
    const bool stuck = offset == from && from > 0 && is_digit(text[from - 1]) && is_word(text[from]);
    if (stuck) return explain_number(text, text.find_last_not_of("0123456789+-.eE", from - 1) + 1);
    if (text[offset] != ',') {
      if (starts_value(text[offset])) return {offset, "no comma before this", "write , between entries"};
      return {offset, "unexpected " + in_quotes(token_at(text, offset)), in_object ? "write , or } here" : "write , or ] here"};
    }
    const std::size_t comma = offset;
    offset = skip_blank(text, comma + 1);
    if (offset < text.size() && (text[offset] == '}' || text[offset] == ']'))
      return {comma, "a comma after the last entry", "remove it"};
    if (offset < text.size() && text[offset] == ',') return {offset, "two commas", "remove one"};
  }
  if (is_unfinished_comment(text, offset)) return {offset, "the comment has no end", "close it with */"};
  if (offset >= text.size()) return explain_end(text.size(), open_line);
  return in_object ? explain_key(text, offset) : explain_value(text, offset);
}

}  // namespace vramd::policy
