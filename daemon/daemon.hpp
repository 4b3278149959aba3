// The daemon put together: driver, devices, broker, sockets, HTTP, signals.
#pragma once

#include "daemon/options.hpp"

namespace vramd {

// Runs until SIGTERM or SIGINT. Returns the exit code.
int run_daemon(const Options& options);

}  // namespace vramd
