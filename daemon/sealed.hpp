// Text in a memfd that nobody can change any more: handed to a peer without trusting it.
#pragma once

#include <string_view>

#include "allocator/base/result.hpp"
#include "allocator/base/unique_fd.hpp"

namespace vramd {

Result<UniqueFd> sealed_memory(const char* name, std::string_view content);

}  // namespace vramd
