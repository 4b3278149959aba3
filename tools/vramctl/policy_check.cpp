#include "tools/vramctl/policy_check.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "policies/file/document.hpp"
#include "policies/file/policy.hpp"

namespace vramd::ctl {
namespace {

using policy::Diagnostic;
using policy::Parsed;

Parsed parse_standard_input() {
  std::string text;
  char buffer[16384];
  // One byte more than allowed is enough for parse() to say that the text is too large.
  while (text.size() <= policy::kMaxFileBytes) {
    const std::size_t got = std::fread(buffer, 1, sizeof buffer, stdin);
    if (got == 0) break;
    text.append(buffer, got);
  }
  return policy::parse(text);
}

nlohmann::ordered_json as_json(const std::string& file, const Diagnostic& diagnostic) {
  return {{"file", file},
          {"line", diagnostic.line},
          {"column", diagnostic.column},
          {"severity", diagnostic.severity == Diagnostic::Severity::error ? "error" : "warning"},
          {"path", diagnostic.path},
          {"message", diagnostic.what},
          {"hint", diagnostic.instead}};
}

}  // namespace

int policy_check(const PolicyCheckOptions& options) {
  auto list = nlohmann::ordered_json::array();
  int exit_code = kOk;
  for (const std::string& file : options.files) {
    const bool standard_input = file == "-";
    const std::string name = standard_input ? "<stdin>" : file;
    const Parsed parsed = standard_input ? parse_standard_input() : policy::parse_file(file);
    for (const Diagnostic& diagnostic : parsed.diagnostics) {
      if (options.json) {
        list.push_back(as_json(name, diagnostic));
      } else {
        std::fprintf(stderr, "%s\n", diagnostic.text(name).c_str());
      }
    }
    if (!parsed.policy || (options.strict && !parsed.diagnostics.empty())) exit_code = kFinding;
    if (parsed.policy && !options.json) std::printf("%s: ok\n", name.c_str());
  }
  if (options.json) std::printf("%s\n", list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return exit_code;
}

}  // namespace vramd::ctl
