// vramd-bench: see README.md.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tools/bench/report.hpp"

namespace {

using namespace vramd::bench;

struct Known {
  const char* name;
  const char* what;
  Result (*run)(const Options&);
};
constexpr Known kBenches[] = {
    {"startup", "what the preloaded library adds to the start of programs that never touch CUDA", run_startup},
    {"sim", "what the simulated driver's own calls cost", run_sim},
    {"gate", "what the hook and the open gate add to a launch", run_gate},
    {"grant", "what a warm chunk from the daemon costs", run_grant},
    {"giveback", "how fast the driver has back what a session gives back", run_giveback},
};

constexpr int kMissed = 1, kUsage = 2;

const Known* find(const std::string& name) {
  const auto* end = std::end(kBenches);
  const auto* found = std::find_if(std::begin(kBenches), end, [&](const Known& bench) { return name == bench.name; });
  return found == end ? nullptr : found;
}

std::string check_name(const std::string& name) {
  if (find(name) != nullptr) return {};
  std::string message = "\"" + name + "\" is no bench; write";
  for (const Known& bench : kBenches) message += std::string(&bench == kBenches ? " " : " or ") + bench.name;
  return message;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == kGateChild) return run_gate_child(std::atoi(argv[2]));
  CLI::App app("Measures vramd beside its peers.", "vramd-bench");
  std::string list =
      "Exit codes: 0 ok, 1 a target was missed (--check) or a bench could not measure, 2 wrong usage.\n\nBenches:\n";
  for (const Known& bench : kBenches) list += std::string("  ") + bench.name + ": " + bench.what + "\n";
  app.footer(list);
  std::vector<std::string> names;
  Options options;
  bool json = false, check = false;
  app.add_option("BENCH", names, "Which to run; default: all")->check(check_name);
  app.add_flag("--json", json, "Print JSON");
  app.add_flag("--check", check, "Exit with 1 when a row misses its target");
  app.add_flag("--long", options.long_run, "More samples");
  app.add_option("--build", options.folder, "Folder of the build; default: the one that vramd-bench lies in")
      ->type_name("FOLDER");
  app.add_option("--shim", options.shim, "The library to preload; default: lib/libvramd.so of the build")->type_name("FILE");
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string("vramd-bench: ") + error.what() + "; vramd-bench --help says how it is used\n";
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (options.folder.empty())
    options.folder = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path().string();
  if (options.shim.empty()) options.shim = options.folder + "/lib/libvramd.so";
  if (names.empty())
    for (const Known& bench : kBenches) names.emplace_back(bench.name);

  std::vector<Result> results;
  for (const std::string& name : names) {
    try {
      results.push_back(find(name)->run(options));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "vramd-bench: %s: %s\n", name.c_str(), error.what());
      return kMissed;
    }
  }
  std::fputs((json ? to_json(results) : to_text(results)).c_str(), stdout);
  const bool passed = std::all_of(results.begin(), results.end(), [](const Result& result) {
    return std::all_of(result.rows.begin(), result.rows.end(), [](const Row& row) { return row.passes(); });
  });
  return check && !passed ? kMissed : 0;
}
