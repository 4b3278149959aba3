// Lines on stderr for people, without allocation, without stdio. Silent below the level of VRAMD_LOG (default: warn).
// Thread-safe: one write() per line.
#pragma once

namespace vramd::shim {

enum class LogLevel : int { off = 0, error, warn, info, debug };

void set_log_level(LogLevel level);
LogLevel log_level();

// printf-style; at most 511 bytes. The line starts with "vramd: " and the level when it is error or warn.
void log(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace vramd::shim
