#include "daemon/configuration.hpp"

namespace vramd {

Configuration read_configuration(const std::string& path) {
  Configuration result;
  if (path.empty()) {
    result.policy.emplace();
    return result;
  }
  policy::Parsed parsed = policy::parse_file(path);
  result.policy = std::move(parsed.policy);
  for (const policy::Diagnostic& diagnostic : parsed.diagnostics) {
    const bool is_error = diagnostic.severity == policy::Diagnostic::Severity::error;
    (is_error ? result.errors : result.warnings).push_back(diagnostic.text(path));
  }
  return result;
}

}  // namespace vramd
