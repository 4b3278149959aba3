// The daemon's log on stderr, one line an event. Any thread.
#pragma once

#include <string>

namespace vramd::log {

// "debug", "info", "warning" or "error"; false for anything else.
bool set_level(const std::string& name);

void debug(const std::string& message);
void info(const std::string& message);
void warning(const std::string& message);
void error(const std::string& message);

}  // namespace vramd::log
