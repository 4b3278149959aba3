#include <exception>

#include "daemon/daemon.hpp"
#include "daemon/log.hpp"
#include "daemon/trouble.hpp"

int main(int argc, char** argv) {
  const vramd::Parsing parsing = vramd::parse_options(argc, argv);
  if (parsing.exit_code) return *parsing.exit_code;
  try {
    return vramd::run_daemon(parsing.options);
  } catch (const std::exception& error) {
    vramd::log::error(error.what());
    return vramd::kExitRuntime;
  }
}
