// Any bytes as a policy file: no crash, no hang, and either a policy or an error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "policies/file/policy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using vramd::policy::Diagnostic;
  const auto parsed = vramd::policy::parse(std::string(reinterpret_cast<const char*>(data), size));
  const bool has_error = std::any_of(parsed.diagnostics.begin(), parsed.diagnostics.end(),
                                     [](const Diagnostic& d) { return d.severity == Diagnostic::Severity::error; });
  if (parsed.policy.has_value() == has_error) std::abort();
  for (const Diagnostic& diagnostic : parsed.diagnostics)
    if (diagnostic.line < 1 || diagnostic.column < 1 || diagnostic.text("f").size() > 4096) std::abort();
  return 0;
}
