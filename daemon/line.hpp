// The daemon's side of a session's line: on it the daemon speaks first, and beside it lies the page on which the session shows
// what it holds idle.
#pragma once

#include <functional>
#include <memory>

#include "allocator/base/result.hpp"
#include "allocator/base/unique_fd.hpp"
#include "allocator/base/units.hpp"

namespace vramd {

struct Line {
  // Asks the session to give back so many idle bytes of a device. Lost when the session doesn't read.
  std::function<void(std::uint32_t request, std::uint32_t device, Bytes bytes)> recall;
  // What the session says it holds idle on a device. Anything may stand there.
  std::function<Bytes(std::uint32_t device)> idle;
};

struct NewLine {
  Line line;
  UniqueFd session_socket, page;  // for the session
};
Result<NewLine> make_line();

}  // namespace vramd
