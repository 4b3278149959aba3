#include "tools/traces/format.hpp"

#include <array>
#include <charconv>
#include <limits>

namespace vramd::traces {
namespace {

struct OpLetter {
  Op op;
  char letter;
};
constexpr std::array kLetters = {OpLetter{Op::present, 'p'}, OpLetter{Op::allocate, 'a'}, OpLetter{Op::release, 'f'},
                                 OpLetter{Op::grew, 'S'},    OpLetter{Op::shrank, 's'},   OpLetter{Op::marker, 'O'}};

// Splits off what stands before the next comma.
std::string_view take_field(std::string_view& rest) {
  const std::size_t comma = rest.find(',');
  const std::string_view field = rest.substr(0, comma);
  rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  return field;
}

// A decimal number without sign, blanks or leading zeros.
template <class Number>
std::string parse_number(std::string_view field, const char* name, Number& number) {
  const char* end = field.data() + field.size();
  const auto [stop, status] = std::from_chars(field.data(), end, number);
  if (status == std::errc::result_out_of_range && stop == end) {
    return std::string(name) + " " + quoted(field) + " is too large; expected at most " +
           std::to_string(std::numeric_limits<Number>::max());
  }
  const bool leading_zero = field.size() > 1 && field[0] == '0';
  if (status != std::errc() || stop != end || leading_zero) {
    return std::string(name) + " " + quoted(field) + " is not a number; expected decimal digits";
  }
  return {};
}

}  // namespace

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 40;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  if (text.size() > kShown) out += "...";
  return out + "\"";
}

std::string parse_line(std::string_view line, Event& event) {
  std::size_t commas = 0;
  for (const char c : line) commas += c == ',';
  if (commas != 4) {
    return quoted(line) + " has " + std::to_string(commas + 1) + " fields; expected 5: " + std::string(kHeader);
  }
  std::string_view rest = line;
  const std::string_view op = take_field(rest);
  bool known = false;
  for (const OpLetter& entry : kLetters) {
    if (op.size() != 1 || op[0] != entry.letter) continue;
    event.op = entry.op;
    known = true;
  }
  if (!known) return "op " + quoted(op) + " is unknown; expected one of p a f S s O";
  std::string wrong = parse_number(take_field(rest), "id", event.id);
  if (wrong.empty()) wrong = parse_number(take_field(rest), "size", event.size);
  if (wrong.empty()) wrong = parse_number(take_field(rest), "stream", event.stream);
  if (wrong.empty()) wrong = parse_number(take_field(rest), "t_us", event.microseconds);
  return wrong;
}

void append_line(const Event& event, std::string& text) {
  for (const OpLetter& entry : kLetters) {
    if (entry.op == event.op) text += entry.letter;
  }
  text += ',' + std::to_string(event.id) + ',' + std::to_string(event.size) + ',' + std::to_string(event.stream) + ',' +
          std::to_string(event.microseconds) + '\n';
}

}  // namespace vramd::traces
