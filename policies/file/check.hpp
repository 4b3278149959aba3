// Checks a document against the tables of keys: unknown keys, missing keys, types, units, ranges.
#pragma once

#include "policies/file/document.hpp"
#include "policies/file/findings.hpp"

namespace vramd::policy {

// Reports everything that is wrong with single keys. `complete` is false when a syntax error cut the document
// off: what is missing then is not reported.
void check_keys(const Node& root, bool complete, Findings& findings);

}  // namespace vramd::policy
