#include "daemon/options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "daemon/socket_file.hpp"
#include "daemon/trouble.hpp"

namespace vramd {

namespace {
constexpr const char* kSystemConfig = "/etc/vramd/vramd.json";
}

Parsing parse_options(int argc, char** argv) {
  Parsing result;
  Options& options = result.options;
  options.socket = default_socket_path();
  CLI::App app("vramd owns the memory of this host's GPUs and lends it to sessions.", "vramd");
  app.footer(
      "Each flag can be given in the environment. SIGHUP reads the policy file again, SIGTERM ends the "
      "daemon.\n"
      "Exit codes: 0 ended on request, 1 no driver, no GPU or a system error, 2 usage or configuration "
      "error.");
  app.set_version_flag("--version", "vramd " VRAMD_VERSION);
  app.add_option("--socket", options.socket, "Where sessions connect")
      ->envname("VRAMD_SOCKET")
      ->type_name("PATH")
      ->capture_default_str();
  app.add_option("--config", options.config, std::string("Policy file; default: ") + kSystemConfig + " if it exists")
      ->envname("VRAMD_CONF")
      ->type_name("FILE");
  app.add_option("--web.listen-address", options.web_address,
                 "Address of /metrics and the status pages, port 0 = any free one; default: the policy's "
                 "metrics.listen, else 127.0.0.1:9845")
      ->envname("VRAMD_WEB_LISTEN_ADDRESS")
      ->type_name("ADDRESS:PORT");
  app.add_option("--sim", options.sim, "Simulated GPUs instead of real ones, such as rtx-a5000-24gx2")
      ->envname("VRAMD_SIM")
      ->type_name("PROFILE[xN]");
  app.add_option("--sim-dir", options.sim_directory, "Folder of the simulated libcuda; default: ../simgpu")
      ->envname("VRAMD_SIM_DIR")
      ->type_name("FOLDER");
  app.add_option("--driver", options.driver, "The driver library")
      ->envname("VRAMD_DRIVER")
      ->type_name("PATH")
      ->capture_default_str();
  app.add_option("--log-level", options.log_level, "debug, info, warning or error")
      ->envname("VRAMD_LOG_LEVEL")
      ->type_name("LEVEL")
      ->capture_default_str()
      ->check(CLI::IsMember({"debug", "info", "warning", "warn", "error"}));
  app.add_flag("--check-config", options.check_config, "Checks the policy file, prints what is wrong with it and ends");
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string("vramd: ") + error.what() + "; vramd --help lists the flags\n";
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);  // prints help, version or the error
    result.exit_code = code == 0 ? 0 : kExitUsage;
    return result;
  }
  if (options.log_level == "warn") options.log_level = "warning";
  if (options.config.empty() && ::access(kSystemConfig, F_OK) == 0) options.config = kSystemConfig;
  return result;
}

}  // namespace vramd
