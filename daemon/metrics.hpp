// A snapshot in the text format of Prometheus.
#pragma once

#include <string>

#include "daemon/snapshot.hpp"

namespace vramd {

std::string metrics_text(const Snapshot& snapshot);

}  // namespace vramd
