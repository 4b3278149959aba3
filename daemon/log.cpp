#include "daemon/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace vramd::log {
namespace {

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = spdlog::stderr_logger_mt("vramd");
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *instance;
}

}  // namespace

bool set_level(const std::string& name) {
  const auto level = spdlog::level::from_str(name);  // `off` for unknown names
  if (level != spdlog::level::debug && level != spdlog::level::info && level != spdlog::level::warn &&
      level != spdlog::level::err)
    return false;
  logger().set_level(level);
  return true;
}

// As an argument, never as the format: messages carry names that users chose.
void debug(const std::string& message) { logger().debug("{}", message); }
void info(const std::string& message) { logger().info("{}", message); }
void warning(const std::string& message) { logger().warn("{}", message); }
void error(const std::string& message) { logger().error("{}", message); }

}  // namespace vramd::log
