// The text of a trace line: parsing and printing of one event, without regard to other lines.
#pragma once

#include <string>
#include <string_view>

#include "tools/traces/event.hpp"

namespace vramd::traces {

inline constexpr std::string_view kHeader = "op,id,size,stream,t_us";

// Parses one line without its newline. On failure returns "what is wrong; what is expected", else an empty
// string.
std::string parse_line(std::string_view line, Event& event);

// Appends the line of an event, newline included.
void append_line(const Event& event, std::string& text);

// For messages: quoted, cut to a sensible length, unprintable bytes as \xNN.
std::string quoted(std::string_view text);

}  // namespace vramd::traces
