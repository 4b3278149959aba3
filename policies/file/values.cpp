#include "policies/file/values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "policies/file/text.hpp"

namespace vramd::policy {
namespace {

struct Unit {
  std::string_view name;
  long double factor;
};

constexpr std::array<Unit, 5> kSizeUnits{
    {{"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"TiB", 1099511627776}}};
constexpr std::array<Unit, 5> kTimeUnits{{{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};

constexpr std::string_view kSizeExample = "write a size such as \"12GiB\" or a percentage such as \"75%\"";
constexpr std::string_view kTimeExample = "write a time such as \"250ms\", \"5s\" or \"10m\"";

ValueProblem problem(std::string what, std::string_view instead) { return {std::move(what), std::string(instead)}; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// "12.5" at the start of `text`, and what follows it.
struct Quantity {
  std::string_view digits, unit;
};

Quantity split(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end != 0 && end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
    ++end;
    while (end < text.size() && is_digit(text[end])) ++end;
  }
  return {text.substr(0, end), text.substr(end)};
}

// Digits with at most one dot. Saturates: nobody means 30 digits.
long double to_number(std::string_view digits) {
  long double value = 0, scale = 0;
  for (const char c : digits.substr(0, 40)) {
    if (c == '.') {
      scale = 1;
      continue;
    }
    value = value * 10 + (c - '0');
    scale *= 10;
  }
  return digits.size() > 40 ? static_cast<long double>(INFINITY) : value / std::max<long double>(scale, 1);
}

// "1e9" written out, when it is a whole number of reasonable size.
std::string written_out(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole =
      error == std::errc{} && end == text.data() + text.size() && value >= 0 && value < 1e18 && value == std::floor(value);
  return whole ? std::to_string(static_cast<std::uint64_t>(value)) : std::string{};
}

// The unit that somebody who wrote `unit` most likely means, or empty.
std::string_view meant_size_unit(std::string_view unit) {
  const std::string wanted = lower(trim(unit));
  for (const Unit& known : kSizeUnits) {
    const std::string name = lower(known.name);
    const bool bytes = name == "b";
    if (wanted == name || (bytes && (wanted == "byte" || wanted == "bytes"))) return known.name;
    if (bytes) continue;
    const std::string prefix = name.substr(0, 1);
    if (wanted == prefix || wanted == prefix + "b" || wanted == prefix + "i") return known.name;
  }
  return {};
}

// Everything that is wrong about a quantity whatever its unit.
tl::expected<Quantity, ValueProblem> quantity(std::string_view text, std::string_view example) {
  const std::string_view trimmed = trim(text);
  if (trimmed.empty()) return tl::unexpected(problem("empty", example));
  if (trimmed.front() == '-') return tl::unexpected(problem(in_quotes(text) + " is negative", example));
  const Quantity parts = split(trimmed);
  if (parts.digits.empty()) return tl::unexpected(problem(in_quotes(text) + " does not start with a number", example));
  if (trimmed.size() != text.size() || (!parts.unit.empty() && parts.unit.front() == ' ')) {
    std::string_view unit = meant_size_unit(parts.unit);
    if (unit.empty()) unit = trim(parts.unit);
    return tl::unexpected(
        problem("a space in " + in_quotes(text), "write \"" + std::string(parts.digits) + printable(unit) + '"'));
  }
  return parts;
}

ValueProblem unknown_size_unit(std::string_view text, const Quantity& parts) {
  if (const std::string digits = written_out(text); !digits.empty())
    return {in_quotes(text) + " is written with an exponent", "write " + digits};
  const std::string_view meant = meant_size_unit(parts.unit);
  if (!meant.empty()) {
    return {"unknown unit in " + in_quotes(text), "write \"" + std::string(parts.digits) + std::string(meant) +
                                                      "\" (units are B, KiB, MiB, GiB and TiB, steps of 1024)"};
  }
  return {"unknown unit " + in_quotes(parts.unit), "units are B, KiB, MiB, GiB, TiB and %"};
}

}  // namespace

std::uint64_t Amount::of(std::uint64_t total) const {
  if (!is_percent) return bytes;
  const auto share = static_cast<long double>(total) * static_cast<long double>(percent) / 100;
  return std::min(total, static_cast<std::uint64_t>(share));
}

Checked<Amount> check_amount(std::string_view text) {
  const auto parts = quantity(text, kSizeExample);
  if (!parts) return tl::unexpected(parts.error());
  const long double number = to_number(parts->digits);
  if (parts->unit == "%") {
    if (number > 100) return tl::unexpected(problem(in_quotes(text) + " is more than 100 %", "write at most \"100%\""));
    return Amount{0, static_cast<double>(number), true};
  }
  long double factor = 1;
  if (!parts->unit.empty()) {
    const auto unit =
        std::find_if(kSizeUnits.begin(), kSizeUnits.end(), [&](const Unit& known) { return known.name == parts->unit; });
    if (unit == kSizeUnits.end()) return tl::unexpected(unknown_size_unit(text, *parts));
    factor = unit->factor;
  } else if (number != 0) {
    return tl::unexpected(problem(in_quotes(text) + " has no unit",
                                  "write a unit, such as \"" + std::string(parts->digits) + "GiB\" (or \"B\" for bytes)"));
  }
  if (number * factor > static_cast<long double>(kMaxBytes))
    return tl::unexpected(problem(in_quotes(text) + " is more than 1 EiB", kSizeExample));
  return Amount{static_cast<std::uint64_t>(number * factor), 0, false};
}

Checked<std::int64_t> check_duration(std::string_view text) {
  const auto parts = quantity(text, kTimeExample);
  if (!parts) return tl::unexpected(parts.error());
  if (parts->unit.empty())
    return tl::unexpected(
        problem(in_quotes(text) + " has no unit of time", "write \"" + std::string(parts->digits) + "s\" for seconds"));
  const auto unit =
      std::find_if(kTimeUnits.begin(), kTimeUnits.end(), [&](const Unit& known) { return known.name == parts->unit; });
  if (unit == kTimeUnits.end())
    return tl::unexpected(problem("unknown unit of time " + in_quotes(parts->unit), "units are us, ms, s, m and h"));
  const long double nanos = to_number(parts->digits) * unit->factor;
  if (nanos > 365.0L * 24 * 3600 * 1e9L) return tl::unexpected(problem(in_quotes(text) + " is more than a year", kTimeExample));
  return static_cast<std::int64_t>(nanos);
}

Checked<std::string> check_listen(std::string_view text) {
  constexpr std::string_view kExample = "write ADDRESS:PORT such as \"127.0.0.1:9845\", or \"off\"";
  if (text == "off") return std::string(text);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0)
    return tl::unexpected(problem(in_quotes(text) + (colon == 0 ? " has no address" : " has no port"), kExample));
  const std::string_view host = text.substr(0, colon), port = text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (!bracketed && host.find(':') != std::string_view::npos)
    return tl::unexpected(
        problem("an IPv6 address without brackets in " + in_quotes(text), "write for example \"[::1]:9845\""));
  constexpr std::string_view kHostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
  const std::string_view name = bracketed ? host.substr(1, host.size() - 2) : host;
  if (name.find_first_not_of(bracketed ? "0123456789abcdefABCDEF:." : kHostCharacters) != std::string_view::npos)
    return tl::unexpected(problem(in_quotes(host) + " is no address", kExample));
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (port.empty() || error != std::errc{} || end != port.data() + port.size() || number > 65535)
    return tl::unexpected(problem(in_quotes(port) + " is no port", "write a port from 0 to 65535; 0 takes any free one"));
  return std::string(text);
}

std::optional<Amount> parse_amount(const std::string& text) {
  const Checked<Amount> amount = check_amount(text);
  if (!amount) return std::nullopt;
  return *amount;
}

}  // namespace vramd::policy
