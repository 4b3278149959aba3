#include "tools/bench/report.hpp"

#include <cstdio>

#include <nlohmann/json.hpp>

namespace vramd::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

Json row_json(const Row& row) {
  Json peer = nullptr, ratio = nullptr, target = nullptr;
  if (row.peer) {
    peer = {{row.peer->name, row.peer->value}};
    if (row.peer->value != 0) ratio = row.value() / row.peer->value;
  }
  if (row.at_most) target = *row.at_most;
  return {{"case", row.name},
          {"value", row.value()},
          {"unit", row.unit},
          {"p50", row.samples.percentile(50)},
          {"p99", row.samples.percentile(99)},
          {"peer", peer},
          {"ratio", ratio},
          {"target", target},
          {"control", row.is_control},
          {"pass", row.passes()}};
}

std::string verdict(const Row& row) {
  if (!row.at_most) return "";
  const std::string bound = (row.is_control ? "control, must be above " : "at most ") + number(*row.at_most);
  return bound + (row.passes() ? ": ok" : ": MISSED");
}

}  // namespace

std::string to_json(const std::vector<Result>& results) {
  Json all = Json::array();
  for (const Result& result : results) {
    Json rows = Json::array();
    for (const Row& row : result.rows) rows.push_back(row_json(row));
    all.push_back({{"bench", result.bench}, {"device", result.device}, {"profile", result.profile}, {"rows", rows}});
  }
  return all.dump(2) + "\n";
}

std::string to_text(const std::vector<Result>& results) {
  std::string text;
  for (const Result& result : results) {
    text += result.bench + " (" + result.device + (result.profile.empty() ? "" : ", profile " + result.profile) + ")\n";
    for (const Row& row : result.rows) {
      char line[256];
      std::snprintf(line, sizeof line, "  %-44s %9s %-3s p99 %9s", row.name.c_str(), number(row.value()).c_str(),
                    row.unit.c_str(), number(row.samples.percentile(99)).c_str());
      text += line;
      if (row.peer) text += "   " + row.peer->name + " " + number(row.peer->value);
      if (const std::string told = verdict(row); !told.empty()) text += "   " + told;
      text += '\n';
    }
  }
  return text;
}

}  // namespace vramd::bench
