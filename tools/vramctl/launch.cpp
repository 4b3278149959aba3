#include "tools/vramctl/launch.hpp"

#include <algorithm>
#include <string_view>

namespace vramd::ctl {
namespace {

constexpr std::string_view kLibraryPath = "LD_LIBRARY_PATH";

bool is_set(const Lookup& environment, const char* name) {
  const char* value = environment(name);
  return value != nullptr && *value != '\0';
}

class Plan {
 public:
  explicit Plan(const Lookup& environment) : environment_(environment) {}

  void set(const std::string& name, const std::string& value, const std::string& why) {
    if (value.empty()) return;
    const char* now = environment_(name.c_str());
    if (now == nullptr || value != now) variables_.push_back({name, value, why});
  }
  void set_default(const char* name, const char* value, const char* why) {
    if (environment_(name) == nullptr) variables_.push_back({name, value, why});
  }
  std::vector<Variable> take() { return std::move(variables_); }

 private:
  const Lookup& environment_;
  std::vector<Variable> variables_;
};

}  // namespace

std::string prepended(const std::string& item, const char* list, const char* separators) {
  std::string result = item;
  std::string_view rest = list == nullptr ? "" : list;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(separators), rest.size());
    const std::string_view entry = rest.substr(0, end);
    if (!entry.empty() && entry != item) result += ':' + std::string(entry);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return result;
}

std::vector<std::pair<std::string, std::string>> simulator_variables(
    const std::vector<std::pair<std::string, std::string>>& environment) {
  std::vector<std::pair<std::string, std::string>> taken;
  std::copy_if(environment.begin(), environment.end(), std::back_inserter(taken),
               [](const auto& variable) { return variable.first == kLibraryPath || variable.first.starts_with("SIM_"); });
  return taken;
}

std::vector<Variable> plan_environment(const RunOptions& options, const LaunchFacts& facts, const Lookup& environment) {
  Plan plan(environment);
  plan.set("LD_PRELOAD", prepended(facts.library, environment("LD_PRELOAD"), ": "), "puts vramd into the program");
  plan.set("VRAMD_MODE", options.mode, "--mode");
  plan.set("VRAMD_LIMIT", options.limit, "--limit");
  plan.set("VRAMD_PRIORITY", options.priority, "--priority");
  plan.set("VRAMD_JOB", options.job, "--job");
  // A daemon that answered here must be the one that the program finds, from whatever folder and environment.
  const bool asked = !options.socket.empty();
  plan.set("VRAMD_SOCKET", asked ? options.socket : facts.socket, asked ? "--socket" : "the daemon that answers here");
  for (const auto& [name, value] : facts.simulated_gpu) {
    if (name == kLibraryPath) {
      // Several folders may come at once; the last one prepended stands first.
      std::string list = is_set(environment, name.c_str()) ? environment(name.c_str()) : "";
      std::string_view folders = value;
      while (!folders.empty()) {
        const std::size_t colon = folders.rfind(':');
        const std::size_t start = colon == std::string_view::npos ? 0 : colon + 1;
        if (start < folders.size()) list = prepended(std::string(folders.substr(start)), list.c_str(), ":");
        folders = folders.substr(0, colon == std::string_view::npos ? 0 : colon);
      }
      plan.set(name, list, "the daemon's simulated GPU");
    } else {
      plan.set(name, value, "the daemon's simulated GPU");
    }
  }
  const bool pools = options.mode.empty() || options.mode == "pool";
  if (pools) {
    plan.set_default("XLA_PYTHON_CLIENT_PREALLOCATE", "false", "else JAX takes most of the GPU at its start");
    plan.set_default("TF_FORCE_GPU_ALLOW_GROWTH", "true", "else TensorFlow takes all of the GPU at its start");
  }
  return plan.take();
}

}  // namespace vramd::ctl
