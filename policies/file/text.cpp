#include "policies/file/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace vramd::policy {
namespace {

constexpr std::size_t kLongestWord = 48;  // longer ones are no typo of ours

// Length of the UTF-8 sequence at the start of `text`, 0 when it is broken. Overlong forms and surrogates are
// broken.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const int lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (!continues(1) || !continues(2)) return 0;
    const bool overlong = lead == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = lead == 0xed && byte(1) > 0x9f;
    return overlong || surrogate ? 0 : 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    const bool overlong = lead == 0xf0 && byte(1) < 0x90;
    const bool too_large = lead == 0xf4 && byte(1) > 0x8f;
    return overlong || too_large ? 0 : 4;
  }
  return 0;
}

std::string hex_escape(char c) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<std::uint8_t>(c);
  return {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

// Optimal string alignment: three rows of the usual table are enough.
std::size_t edits(std::string_view a, std::string_view b) {
  std::array<std::array<std::size_t, kLongestWord + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& previous = rows[(i + 2) % 3];
    const auto& before_previous = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u);
      row[j] = std::min({replace, previous[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_previous[j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

Position LineCounter::at(std::size_t offset) {
  for (; seen_ < offset && seen_ < text_.size(); ++seen_) {
    const char c = text_[seen_];
    if (c == '\n') {
      ++position_.line;
      position_.column = 1;
    } else if ((static_cast<std::uint8_t>(c) & 0xc0) != 0x80) {
      ++position_.column;
    }
  }
  return position_;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= most) return shown + "...";
    const std::size_t length = sequence_length(text);
    const char c = text.front();
    const bool control = static_cast<std::uint8_t>(c) < 0x20 || c == 0x7f;
    if (length == 0 || control) {
      shown += hex_escape(c);
      text.remove_prefix(1);
    } else {
      shown += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return shown;
}

std::string in_quotes(std::string_view text) { return '"' + printable(text) + '"'; }

std::size_t first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.empty() || word.size() > kLongestWord) return {};
  // Short words are within two edits of everything.
  const std::size_t allowed = word.size() <= 3 ? 1 : 2;
  std::size_t best = allowed + 1;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const std::size_t distance = edits(word, candidate);
    if (distance >= best) continue;
    best = distance;
    found = candidate;
  }
  return found;
}

std::string one_of(std::span<const std::string_view> choices) {
  std::string list;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i != 0) list += i + 1 == choices.size() ? " or " : ", ";
    list += '"' + std::string(choices[i]) + '"';
  }
  return list;
}

}  // namespace vramd::policy
