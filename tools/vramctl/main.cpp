#include <cstdio>
#include <exception>

#include "tools/vramctl/arguments.hpp"
#include "tools/vramctl/calibrate.hpp"
#include "tools/vramctl/doctor.hpp"
#include "tools/vramctl/orders.hpp"
#include "tools/vramctl/policy_check.hpp"
#include "tools/vramctl/probe.hpp"
#include "tools/vramctl/run.hpp"
#include "tools/vramctl/status.hpp"
#include "tools/vramctl/who.hpp"

namespace vramd::ctl {
namespace {

int execute(const RunOptions& options) { return run(options); }
int execute(const StatusOptions& options) { return status(options); }
int execute(const DoctorOptions& options) { return doctor(options); }
int execute(const CalibrateOptions& options) { return calibrate(options); }
int execute(const PolicyCheckOptions& options) { return policy_check(options); }
int execute(const ProbeOptions& options) { return probe(options); }
int execute(const Finished& finished) { return finished.exit_code; }
int execute(const ReloadOptions& options) { return reload(options); }
int execute(const WhoOptions& options) { return who(options); }
int execute(const PsOptions& options) { return ps(options); }
int execute(const TrimOptions& options) { return trim(options); }
int execute(const LimitOptions& options) { return limit(options); }
int execute(const CompletionOptions& options) {
  std::fputs(completion_script(options.shell).c_str(), stdout);
  return kOk;
}

}  // namespace
}  // namespace vramd::ctl

int main(int argc, char** argv) {
  try {
    const auto command = vramd::ctl::parse_arguments(argc, argv);
    return std::visit([](const auto& options) { return vramd::ctl::execute(options); }, command);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vramctl: %s\n", error.what());
    return vramd::ctl::kUsage;
  }
}
