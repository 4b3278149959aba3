// Errors as values. Usable without exceptions, RTTI, heap or libstdc++ runtime: an Error is three words.
#pragma once

#include <cstdint>
#include <tl/expected.hpp>

namespace vramd {

enum class ErrorCode : std::uint32_t {
  invalid_argument = 1,  // the caller's mistake
  out_of_memory,         // device memory is short, for any reason; nothing else is wrong
  over_limit,            // device memory is there, but a limit forbids it
  driver,                // a driver call failed otherwise; `detail` is its CUresult
  system,                // a system call failed; `detail` is errno
  protocol,              // the peer sent something that makes no sense
  timeout,               // a deadline passed
  disconnected,          // the peer is gone
  unsupported,           // known, and not available here
};

struct Error {
  ErrorCode code;
  int detail = 0;         // CUresult for `driver`, errno for `system`, else 0
  const char* what = "";  // string literal: the call or rule that failed
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> failure(ErrorCode code, const char* what, int detail = 0) {
  return tl::unexpected<Error>(Error{code, detail, what});
}

}  // namespace vramd
