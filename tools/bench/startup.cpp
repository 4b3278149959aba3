// startup: what the preloaded library adds to the start of a program that never touches CUDA.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "tools/bench/bench.hpp"

extern char** environ;

namespace vramd::bench {
namespace {

constexpr double kTarget = 1000;  // us
constexpr useconds_t kControlDelay = 5000;

struct Environment {
  std::vector<std::string> texts;
  std::vector<char*> pointers;
};

// This process's environment, with the preload variable as wanted ("" = not set).
Environment environment_with(const std::string& preload) {
  Environment made;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::strncmp(*variable, "LD_PRELOAD=", 11) != 0) made.texts.emplace_back(*variable);
  if (!preload.empty()) made.texts.push_back("LD_PRELOAD=" + preload);
  for (std::string& text : made.texts) made.pointers.push_back(text.data());
  made.pointers.push_back(nullptr);
  return made;
}

// Microseconds from the start of a program to its end.
double time_of(const std::vector<std::string>& command, const Environment& environment) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const double begin = now();
  pid_t child = 0;
  if (::posix_spawn(&child, arguments[0], nullptr, nullptr, arguments.data(), environment.pointers.data()) != 0)
    throw std::runtime_error(command[0] + " cannot be started");
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) throw std::runtime_error(command[0] + " ended with an error");
  return (now() - begin) / 1000;
}

Row added(const std::string& name, const Pairs& pairs) {
  Row row;
  row.name = name;
  row.unit = "us";
  row.samples = pairs.difference;
  row.peer = Peer{"without", pairs.first.percentile(50)};
  row.at_most = kTarget;
  return row;
}

}  // namespace

Result run_startup(const Options& options) {
  if (::access(options.shim.c_str(), R_OK) != 0)
    throw std::runtime_error(options.shim + " cannot be read; build it or name --shim");
  const int pairs = options.long_run ? 1000 : 200;
  const Environment plain = environment_with(""), preloaded = environment_with(options.shim);
  Result result{"startup", "host", "", {}};
  // Named by their paths: what PATH finds may be a script that starts a dozen programs more.
  const std::vector<std::string> commands[] = {
      {"/bin/true"}, {"/bin/bash", "-c", ":"}, {"/usr/bin/python3", "-S", "-c", "pass"}};
  for (const auto& command : commands) {
    if (::access(command[0].c_str(), X_OK) != 0) continue;
    const auto without = [&] { return time_of(command, plain); };
    const auto with = [&] { return time_of(command, preloaded); };
    result.rows.push_back(added("added to the start of " + command[0], take_pairs(pairs, without, with)));
  }
  const auto without = [&] { return time_of({"/bin/true"}, plain); };
  const auto delayed = [&] {
    ::usleep(kControlDelay);
    return time_of({"/bin/true"}, preloaded) + kControlDelay;
  };
  result.rows.push_back(added("true, 5 ms late", take_pairs(pairs / 10, without, delayed)));
  result.rows.back().is_control = true;
  return result;
}

}  // namespace vramd::bench
