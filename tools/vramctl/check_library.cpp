#include <gnu/libc-version.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/vramctl/checks.hpp"
#include "tools/vramctl/elf.hpp"
#include "tools/vramctl/library.hpp"
#include "tools/vramctl/probe.hpp"

namespace vramd::ctl {
namespace {
constexpr const char* kName = "shim library";
}

void check_library(Results& results) {
  const auto library = find_library([](const char* name) -> const char* { return std::getenv(name); });
  if (!library) {
    results.push_back(finding(kName, library.error().what, library.error().remedy));
    return;
  }
  const auto elf = read_elf(*library);
  if (!elf || !elf->is_shared_library) {
    results.push_back(finding(kName, *library + " is no shared library", "install vramd again"));
    return;
  }
  const std::string here = ::gnu_get_libc_version();
  const std::string needs = elf->newest_glibc.empty() ? "no glibc version" : "glibc " + elf->newest_glibc;
  if (version_less(here, elf->newest_glibc)) {
    results.push_back(
        finding(kName, *library + " needs " + needs + ", this host has " + here, "use a build of vramd for an older system"));
    return;
  }
  const ProbeReport report = probe_in_child("library", *library, {{"VRAMD_DISABLE", "1"}});
  const auto facts = nlohmann::json::parse(report.output, nullptr, false);
  if (!report.finished) {
    results.push_back(finding(kName, *library + " cannot be loaded: " + report.trouble, "install vramd again"));
  } else if (facts.is_object() && facts.contains("load_error")) {
    results.push_back(finding(kName, "cannot be loaded: " + facts.value("load_error", ""), "install what it names"));
  } else {
    results.push_back(ok(kName, *library + " loads, needs " + needs + ", here is " + here));
  }
}

}  // namespace vramd::ctl
