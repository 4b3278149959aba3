// Where the simulator speaks: SIM_LOG or stderr for the log, always stderr for misuse.
#pragma once

#include <cstdint>
#include <string>

namespace simgpu {

__attribute__((format(printf, 1, 2))) void log_line(const char* format, ...);

// Something a real GPU would punish. Counted and reported at exit; with SIM_STRICT=1 the process aborts here.
// `kind` is a string literal; `detail` and the call site are kept for the first occurrence of each kind.
void misuse(const char* kind, const std::string& detail);

// Prints what was counted, if anything.
void report_misuse();
// How often, of one kind or (nullptr) of all; and as if nothing had been.
std::uint64_t misuse_count(const char* kind);
void forget_misuse();

// report_misuse(), and writes SIM_COUNTS. Called once, at exit.
void report_at_exit();

}  // namespace simgpu
