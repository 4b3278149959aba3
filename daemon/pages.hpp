// What the daemon answers over HTTP, without HTTP. Pure but for the snapshot it asks for.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "daemon/snapshot.hpp"

namespace vramd {

struct Page {
  unsigned status = 200;
  std::string type;  // Content-Type
  std::string body;
};

// `path` without query. `ready`: sessions are accepted.
Page answer_page(std::string_view path, bool ready, const std::function<Snapshot()>& snapshot);

}  // namespace vramd
