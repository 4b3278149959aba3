#include "tools/vramctl/run.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/vramctl/daemon.hpp"
#include "tools/vramctl/executable.hpp"
#include "tools/vramctl/format.hpp"
#include "tools/vramctl/launch.hpp"
#include "tools/vramctl/library.hpp"
#include "tools/vramctl/status_values.hpp"

namespace vramd::ctl {
namespace {

struct Launch {
  std::string executable;
  std::vector<std::string> command;
  std::vector<Variable> variables;
  std::vector<std::string> notes;  // what the user should know; one line each
};

void say(const std::string& line) { std::fprintf(stderr, "vramctl: %s\n", line.c_str()); }

std::string absolute(const std::string& path) {
  std::error_code error;
  return path.empty() ? path : std::filesystem::absolute(path, error).string();
}

void ask_about_gpus(const RunOptions& options, Launch& launch, LaunchFacts& facts) {
  const std::string socket = socket_path(options.socket);
  const auto answer = ask_daemon(socket);
  if (!answer) {
    launch.notes.push_back(answer.error().what + "; the job runs on memory of its own (local)");
    return;
  }
  facts.socket = absolute(socket);
  const auto status = read_status(answer->status);
  if (!status || options.sim_env == "none") return;
  facts.simulated_gpu = simulator_variables(status->environment);
  if (!facts.simulated_gpu.empty() && !answer->may_choose_libraries()) {
    launch.notes.push_back("the daemon offers a simulated GPU but runs as another user (uid " + std::to_string(answer->uid) +
                           "); its environment is not taken over");
    facts.simulated_gpu.clear();
  }
}

void print_script(const Launch& launch) {
  for (const Variable& variable : launch.variables)
    std::printf("export %s=%s  # %s\n", variable.name.c_str(), shell_quoted(variable.value).c_str(), variable.why.c_str());
  std::string line = "exec";
  for (const std::string& word : launch.command) line += ' ' + shell_quoted(word);
  std::printf("%s\n", line.c_str());
}

void print_json(const Launch& launch) {
  using Json = nlohmann::ordered_json;
  Json environment = Json::object();
  for (const Variable& variable : launch.variables) environment[variable.name] = variable.value;
  const Json json{
      {"environment", environment}, {"executable", launch.executable}, {"command", launch.command}, {"notes", launch.notes}};
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

int execute(const Launch& launch) {
  for (const Variable& variable : launch.variables) ::setenv(variable.name.c_str(), variable.value.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : launch.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  // execvp and not execve: a script without an interpreter line is given to the shell, as everywhere.
  ::execvp(launch.executable.c_str(), words.data());
  const int why = errno;
  say(launch.executable + ": " + std::strerror(why));
  return why == ENOENT ? kNotFound : kNotExecutable;
}

}  // namespace

int run(const RunOptions& options) {
  const Lookup environment = [](const char* name) -> const char* { return std::getenv(name); };
  Launch launch;
  launch.command = options.command;
  const auto executable = find_executable(options.command.front(), environment);
  if (!executable) {
    say(executable.error().what);
    return executable.error().exit_code;
  }
  launch.executable = *executable;
  const auto library = find_library(environment);
  if (!library) {
    say(library.error().what + "; " + library.error().remedy);
    return kUsage;
  }

  LaunchFacts facts;
  facts.library = *library;
  RunOptions resolved = options;
  resolved.socket = absolute(options.socket);
  if (options.mode != "off") ask_about_gpus(resolved, launch, facts);
  for (std::string& obstacle : preload_obstacles(launch.executable)) launch.notes.push_back("warning: " + std::move(obstacle));
  const char* disabled = environment("VRAMD_DISABLE");
  if (disabled != nullptr && *disabled != '\0' && std::strcmp(disabled, "0") != 0)
    launch.notes.push_back("warning: VRAMD_DISABLE=" + std::string(disabled) +
                           " is set, so vramd does nothing in the program; unset it");
  launch.variables = plan_environment(resolved, facts, environment);

  for (const std::string& note : launch.notes) say(note);
  if (options.dry_run) {
    options.json ? print_json(launch) : print_script(launch);
    return kOk;
  }
  if (options.verbose) {
    for (const Variable& variable : launch.variables)
      say(variable.name + '=' + shell_quoted(variable.value) + "  (" + variable.why + ')');
  }
  return execute(launch);
}

}  // namespace vramd::ctl
