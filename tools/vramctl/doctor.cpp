#include "tools/vramctl/doctor.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/vramctl/checks.hpp"

namespace vramd::ctl {
namespace {

using State = CheckResult::State;

const char* word(State state) {
  switch (state) {
    case State::ok: return "ok";
    case State::finding: return "finding";
    case State::skipped: return "skipped";
  }
  return "?";
}

void print(const Results& results) {
  for (const CheckResult& result : results) {
    std::printf("%-8s %s: %s\n", word(result.state), result.name.c_str(), result.text.c_str());
    if (!result.remedy.empty()) std::printf("         -> %s\n", result.remedy.c_str());
  }
}

void print_json(const Results& results) {
  auto list = nlohmann::ordered_json::array();
  for (const CheckResult& result : results) {
    list.push_back(nlohmann::ordered_json{
        {"check", result.name}, {"state", word(result.state)}, {"text", result.text}, {"remedy", result.remedy}});
  }
  std::printf("%s\n", list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

// With a simulated GPU the daemon says where its driver is; the driver is then looked at as sessions will see
// it.
std::vector<std::pair<std::string, std::string>> driver_environment(const std::optional<DaemonStatus>& status,
                                                                    const Lookup& environment) {
  std::vector<std::pair<std::string, std::string>> variables;
  if (!status) return variables;
  LaunchFacts facts;
  facts.simulated_gpu = simulator_variables(status->environment);
  for (const Variable& variable : plan_environment({}, facts, environment))
    if (variable.name == "LD_LIBRARY_PATH" || variable.name.starts_with("SIM_"))
      variables.emplace_back(variable.name, variable.value);
  return variables;
}

}  // namespace

int doctor(const DoctorOptions& options) {
  const Lookup environment = [](const char* name) -> const char* { return std::getenv(name); };
  Results results;
  std::optional<DaemonStatus> status;
  if (options.pid != 0) {
    Results daemon;
    check_daemon(options, daemon, status);
    check_process("/proc", options.pid, status, results);
    results.insert(results.end(), daemon.begin(), daemon.end());
  } else if (!options.command.empty()) {
    check_command(options.command, environment, results);
    check_library(results);
    check_daemon(options, results, status);
  } else {
    check_library(results);
    check_daemon(options, results, status);
    check_policy(options.config, status, results);
    check_driver(driver_environment(status, environment), results);
    check_environment(environment, results);
    check_host(results);
  }
  options.json ? print_json(results) : print(results);
  const auto findings =
      std::count_if(results.begin(), results.end(), [](const CheckResult& result) { return result.state == State::finding; });
  if (!options.json) {
    if (findings == 0) {
      std::printf("all well\n");
    } else {
      std::printf("%td %s\n", findings, findings == 1 ? "finding" : "findings");
    }
  }
  return findings == 0 ? kOk : kFinding;
}

}  // namespace vramd::ctl
