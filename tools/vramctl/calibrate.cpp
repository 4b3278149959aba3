#include "tools/vramctl/calibrate.hpp"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/vramctl/library.hpp"
#include "tools/vramctl/probe.hpp"

namespace vramd::ctl {
namespace {

using Json = nlohmann::ordered_json;

int report_trouble(const std::string& what, const std::string& remedy) {
  std::fprintf(stderr, "vramctl: calibrate: %s; %s\n", what.c_str(), remedy.c_str());
  return kFinding;
}

std::string word_for(const Json& row) {
  if (row.contains("error")) return "not tried: " + row["error"].get<std::string>();
  return row.value("gated", false) ? "seen" : "NOT SEEN";
}

}  // namespace

int calibrate(const CalibrateOptions& options) {
  const auto library = find_library([](const char* name) -> const char* { return std::getenv(name); });
  if (!library) return report_trouble(library.error().what, library.error().remedy);
  // Mode off: nothing but the gate acts, and no daemon is asked.
  const ProbeReport report =
      probe_in_child("submissions", options.runtime, {{"VRAMD_MODE", "off"}, {"VRAMD_DISABLE", ""}}, *library);
  Json facts = Json::parse(report.output, nullptr, false);
  if (!report.finished || !facts.is_object())
    return report_trouble(report.finished ? "the child said nothing that can be read" : report.trouble, "run vramctl doctor");
  if (facts.contains("error")) return report_trouble(facts["error"].get<std::string>(), "name another runtime with --runtime");
  bool seen = true;
  for (const Json& row : facts["calls"]) seen = seen && row.value("gated", false);
  facts["submissions_seen"] = seen;
  if (options.json) {
    std::printf("%s\n", facts.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return seen ? kOk : kFinding;
  }
  std::printf("runtime %s, version %d, driver %d\n", facts.value("runtime", "").c_str(), facts.value("runtime_version", 0),
              facts.value("driver_version", 0));
  for (const Json& row : facts["calls"]) std::printf("  %-32s %s\n", row.value("call", "").c_str(), word_for(row).c_str());
  std::printf("submissions_seen: %s\n", seen ? "yes" : "no");
  return seen ? kOk : kFinding;
}

}  // namespace vramd::ctl
