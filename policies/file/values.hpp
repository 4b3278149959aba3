// Single values of a policy file as people write them: sizes, percentages, durations, ratios, addresses.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "policies/file/policy.hpp"

namespace vramd::policy {

struct ValueProblem {
  std::string what, instead;  // as in Diagnostic
};

template <class T>
using Checked = tl::expected<T, ValueProblem>;

inline constexpr std::uint64_t kMaxBytes = 1ull << 60;  // 1 EiB: more is a mistake

// A size or a percentage. The same syntax as parse_amount(), with the reason when it is none.
Checked<Amount> check_amount(std::string_view text);

// "250ms", "5s", "10m", in nanoseconds.
Checked<std::int64_t> check_duration(std::string_view text);

// "127.0.0.1:9845", "[::1]:9845", "host:0" or "off".
Checked<std::string> check_listen(std::string_view text);

}  // namespace vramd::policy
