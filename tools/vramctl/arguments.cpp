#include "tools/vramctl/arguments.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "tools/vramctl/application.hpp"

namespace vramd::ctl {
namespace {

// What follows "--" of `run` and `doctor` belongs to the command, whatever it looks like; CLI11 must not see it.
struct SplitLine {
  std::vector<std::string> ours, command;
  bool has_separator = false;
};

SplitLine split(int argc, const char* const* argv) {
  SplitLine line;
  const bool has_command = argc > 1 && (std::string_view(argv[1]) == "run" || std::string_view(argv[1]) == "doctor");
  for (int i = 1; i < argc; ++i) {
    if (has_command && !line.has_separator && std::string_view(argv[i]) == "--") {
      line.has_separator = true;
    } else {
      (line.has_separator ? line.command : line.ours).emplace_back(argv[i]);
    }
  }
  return line;
}

Finished wrong(const std::string& message, const std::string& command) {
  const std::string help = command.empty() ? "vramctl --help" : "vramctl " + command + " --help";
  std::fprintf(stderr, "vramctl: %s\nvramctl: %s says how it is used\n", message.c_str(), help.c_str());
  return {kUsage};
}

// The command that the user has got to, in words: "policy check".
std::string chosen_command(const CLI::App& app) {
  std::string name;
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    name += (name.empty() ? "" : " ") + at->get_name();
  }
  return name;
}

Command finish_run(const CLI::App& run, SplitLine line, RunOptions options) {
  std::vector<std::string> rest = run.remaining();
  if (!rest.empty() && line.has_separator)
    return wrong("\"" + rest.front() + "\" stands before --; options of vramctl come first, the command after --", "run");
  if (!rest.empty() && rest.front().starts_with('-'))
    return wrong("unknown option \"" + rest.front() + "\"; put the command after --", "run");
  options.command = line.has_separator ? std::move(line.command) : std::move(rest);
  if (options.command.empty()) return wrong("which command? write it after --", "run");
  if (options.json && !options.dry_run) return wrong("--json goes with --dry-run only", "run");
  return options;
}

Command finish_doctor(SplitLine line, DoctorOptions options) {
  options.command = std::move(line.command);
  if (line.has_separator && options.command.empty()) return wrong("which command? write it after --", "doctor");
  if (options.pid != 0 && line.has_separator) return wrong("--pid and a command: one at a time", "doctor");
  if (!options.config.empty() && (options.pid != 0 || line.has_separator))
    return wrong("--config goes with a look at the whole host only", "doctor");
  return options;
}

}  // namespace

Command parse_arguments(int argc, const char* const* argv) {
  Options options;
  const auto app = make_application(options);
  SplitLine line = split(argc, argv);
  if (line.ours.empty() && line.command.empty()) {
    std::cout << app->help();
    return Finished{kUsage};
  }
  try {
    std::vector<std::string> reversed(line.ours.rbegin(), line.ours.rend());  // as CLI11 wants it
    app->parse(std::move(reversed));
  } catch (const CLI::Success& help_or_version) {
    app->exit(help_or_version, std::cout, std::cerr);
    return Finished{kOk};
  } catch (const CLI::ParseError& error) {
    return wrong(error.what(), chosen_command(*app));
  }
  if (const CLI::App* run = app->get_subcommand("run"); run->parsed()) return finish_run(*run, std::move(line), options.run);
  if (app->got_subcommand("status")) return options.status;
  if (app->got_subcommand("doctor")) return finish_doctor(std::move(line), options.doctor);
  if (app->got_subcommand("calibrate")) return options.calibrate;
  if (app->got_subcommand("policy") && app->get_subcommand("policy")->got_subcommand("reload")) return options.reload;
  if (app->got_subcommand("policy")) return options.policy_check;
  if (app->got_subcommand("who")) return options.who;
  if (app->got_subcommand("ps")) return options.ps;
  if (app->got_subcommand("trim")) return options.trim;
  if (app->got_subcommand("limit")) return options.limit;
  if (app->got_subcommand("completion")) return options.completion;
  return options.probe;
}

}  // namespace vramd::ctl
