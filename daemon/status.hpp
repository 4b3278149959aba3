// A snapshot as the JSON of `vramctl status --json` and /api/v1/status. Bytes are integers.
#pragma once

#include <string>

#include "daemon/snapshot.hpp"

namespace vramd {

std::string status_json(const Snapshot& snapshot);

}  // namespace vramd
