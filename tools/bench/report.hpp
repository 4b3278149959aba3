// The one form in which every bench reports.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/bench.hpp"

namespace vramd::bench {

// An array of {"bench","device","profile","rows":[{"case","value","unit","p50","p99","peer","ratio","target","control",
// "pass"}]}. "ratio" is value over peer. Absent facts are null.
std::string to_json(const std::vector<Result>& results);

// A table.
std::string to_text(const std::vector<Result>& results);

}  // namespace vramd::bench
