// The tree of commands and options, as CLI11 knows it. Parsing and completion are both made from it.
#pragma once

#include <memory>

#include "tools/vramctl/arguments.hpp"

namespace CLI {
class App;
}

namespace vramd::ctl {

// Where the options land. Which command was chosen is asked of the App.
struct Options {
  RunOptions run;
  StatusOptions status;
  DoctorOptions doctor;
  CalibrateOptions calibrate;
  PolicyCheckOptions policy_check;
  ReloadOptions reload;
  WhoOptions who;
  PsOptions ps;
  TrimOptions trim;
  LimitOptions limit;
  CompletionOptions completion;
  ProbeOptions probe;
};

inline constexpr const char* kProbeCommand = "__probe";  // not shown to anybody

std::shared_ptr<CLI::App> make_application(Options& options);

}  // namespace vramd::ctl
