// Tells systemd how the service is (sd_notify's protocol, by hand). Does nothing without $NOTIFY_SOCKET.
#pragma once

#include <string>

namespace vramd {

void notify_service_manager(const std::string& state);  // "READY=1", "STOPPING=1", ...
std::string reloading_state();                          // "RELOADING=1" with the time that systemd wants beside it

}  // namespace vramd
