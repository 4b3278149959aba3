// Why the daemon cannot start: for people, with the exit code that goes with it.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace vramd {

inline constexpr int kExitRuntime = 1;  // no driver, no GPU, a system call failed
inline constexpr int kExitUsage = 2;    // flags, configuration, an address or a socket that is taken

struct Trouble {
  int exit_code;
  std::string message;  // what was asked, what happened, what to do
};

template <class T>
using Try = tl::expected<T, Trouble>;

inline tl::unexpected<Trouble> trouble(int exit_code, std::string message) {
  return tl::unexpected<Trouble>(Trouble{exit_code, std::move(message)});
}

}  // namespace vramd
