#include "tools/vramctl/application.hpp"

#include <CLI/CLI.hpp>

#include "policies/file/values.hpp"

namespace vramd::ctl {
namespace {

const std::vector<std::string> kModes{"off", "observe", "pool"};
const std::vector<std::string> kPriorities{"batch", "normal", "interactive"};
const std::vector<std::string> kShells{"bash", "zsh", "fish"};

CLI::Validator one_of(const std::vector<std::string>& words) {
  std::string list = "{";
  for (const std::string& word : words) list += (list.size() == 1 ? "" : ",") + word;
  list += '}';
  return CLI::Validator(
      [words](const std::string& text) {
        if (std::find(words.begin(), words.end(), text) != words.end()) return std::string{};
        std::string message = "\"" + text + "\" is not known; write";
        for (std::size_t i = 0; i < words.size(); ++i)
          message += (i == 0 ? " " : i + 1 == words.size() ? " or " : ", ") + words[i];
        return message;
      },
      list);
}

// A mode that this version can run. "full" is known, and refused with the way out.
CLI::Validator available_mode() {
  return CLI::Validator(
      [](const std::string& text) {
        if (text == "full") return std::string("full is not built yet: this version does not move live blocks; write pool");
        return one_of(kModes)(const_cast<std::string&>(text));
      },
      "{off,observe,pool}");
}

CLI::Validator size() {
  return CLI::Validator(
      [](const std::string& text) {
        const auto amount = policy::check_amount(text);
        if (!amount) return amount.error().what + "; " + amount.error().instead;
        const bool nothing = amount->is_percent ? amount->percent == 0 : amount->bytes == 0;
        return nothing ? std::string("0 leaves no memory; leave --limit out for no limit") : std::string{};
      },
      "SIZE");
}

// CLI11's help, but with the command of `run` in its first line.
class HelpText : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_name() == "doctor") return "Usage: vramctl doctor [OPTIONS] [-- COMMAND [ARGUMENTS...]]\n";
    if (app->get_name() == "run") return "Usage: vramctl run [OPTIONS] -- COMMAND [ARGUMENTS...]\n";
    return CLI::Formatter::make_usage(app, name);
  }
};

void add_socket(CLI::App& command, std::string& socket) {
  command
      .add_option("--socket", socket,
                  "Socket of the daemon (default: VRAMD_SOCKET, else /run/vramd/vramd.sock, "
                  "else $XDG_RUNTIME_DIR/vramd.sock)")
      ->type_name("PATH");
}

void add_run(CLI::App& app, RunOptions& options) {
  CLI::App* run = app.add_subcommand("run", "Start a program with vramd");
  run->add_option("--mode", options.mode,
                  "off: nothing; observe: only count; pool: memory from the shared pool. Default: as the policy says")
      ->check(available_mode());
  run->add_option("--limit", options.limit, "Most GPU memory per GPU, such as 12GiB or 50%; only lowers the policy's limit")
      ->check(size());
  run->add_option("--priority", options.priority, "Who goes first when memory is short; only lowers the policy's priority")
      ->check(one_of(kPriorities));
  run->add_option("--job", options.job, "Name that vramctl status shows, at most 63 bytes")
      ->type_name("TEXT")
      ->check([](const std::string& text) {
        return text.size() <= 63 ? std::string{} : std::string("a job's name has at most 63 bytes; write a shorter one");
      });
  add_socket(*run, options.socket);
  run->add_option("--sim-env", options.sim_env,
                  "Take over the environment of a daemon with a simulated GPU (daemon), or not (none)")
      ->check(one_of({"daemon", "none"}))
      ->capture_default_str();
  run->add_flag("--dry-run", options.dry_run, "Print what would be set, as a shell script, and start nothing");
  run->add_flag("--json", options.json, "With --dry-run: print JSON");
  run->add_flag("-v,--verbose", options.verbose, "Print what is set, on standard error");
  run->prefix_command();
  run->footer(
      "The program is replaced by the command, so its exit code is the command's.\n"
      "Exit codes of vramctl itself: 2 wrong usage, 126 not executable, 127 not found.\n"
      "Without a daemon the program runs all the same, on memory of its own.\n"
      "Example: vramctl run --limit 12GiB -- python train.py");
}

void add_status(CLI::App& app, StatusOptions& options) {
  CLI::App* status = app.add_subcommand("status", "Show GPUs and sessions");
  status->add_flag("--json", options.json, "Print what the daemon said, as JSON; sizes are bytes");
  add_socket(*status, options.socket);
  status->footer("Exit codes: 0 shown, 1 no answer from a daemon, 2 wrong usage.");
}

void add_doctor(CLI::App& app, DoctorOptions& options) {
  CLI::App* doctor = app.add_subcommand("doctor", "Check whether vramd can work here, and say what to do if not");
  doctor->add_flag("--json", options.json, "Print the checks as JSON");
  doctor->add_option("--config", options.config, "Policy file to check (default: the one the daemon uses)")->type_name("FILE");
  doctor->add_option("--pid", options.pid, "Look at this process only: is vramd active in it, and if not, why?")
      ->type_name("PID")
      ->check(CLI::Range(1, 1 << 22).description(""));
  add_socket(*doctor, options.socket);
  doctor->footer(
      "With -- COMMAND: would vramd be active in it? Nothing is started.\n"
      "Exit codes: 0 all well, 1 findings, 2 wrong usage.");
}

void add_calibrate(CLI::App& app, CalibrateOptions& options) {
  CLI::App* calibrate = app.add_subcommand("calibrate", "Check that vramd sees all GPU work that a CUDA runtime submits");
  calibrate->add_option("--runtime", options.runtime, "The CUDA runtime, as dlopen finds it")
      ->type_name("FILE")
      ->capture_default_str();
  calibrate->add_flag("--json", options.json, "Print the calls as JSON");
  calibrate->footer(
      "A child makes one of each submitting call while vramd holds submissions back: what comes back was not seen.\n"
      "Exit codes: 0 all were seen, 1 one was not or could not be tried, 2 wrong usage.");
}

void add_who(CLI::App& app, WhoOptions& options) {
  CLI::App* who = app.add_subcommand("who", "Show which user holds how much GPU memory");
  who->add_flag("--json", options.json, "Print JSON; sizes are bytes");
  add_socket(*who, options.socket);
}

void add_ps(CLI::App& app, PsOptions& options) {
  CLI::App* ps = app.add_subcommand("ps", "Show the processes that have a GPU open");
  ps->add_flag("--orphans", options.orphans,
               "Only those that are no session: started without vramd, or left over by a job that has ended");
  ps->add_flag("--json", options.json, "Print JSON; sizes are bytes");
  add_socket(*ps, options.socket);
  ps->footer(
      "Processes of other users are seen by root only.\nExit codes: 0 shown, 1 there are orphans (--orphans), or no daemon.");
}

void add_trim(CLI::App& app, TrimOptions& options) {
  CLI::App* trim = app.add_subcommand("trim", "Give idle GPU memory back to the driver: the pool's and the sessions'");
  trim->add_option("--session", options.session, "Only what this session holds idle")
      ->type_name("ID")
      ->check(CLI::Validator(CLI::PositiveNumber).description(""));
  trim->add_option("--gpu", options.gpu, "Only this GPU, by the index in vramctl status")
      ->type_name("INDEX")
      ->check(CLI::Range(0, 15).description(""));
  add_socket(*trim, options.socket);
  trim->footer(
      "For root and the daemon's own user; everybody for a session of his own.\nExit codes: 0 done, 1 refused or no daemon.");
}

void add_limit(CLI::App& app, LimitOptions& options) {
  CLI::App* limit = app.add_subcommand("limit", "Change the limit of a session while it runs");
  limit->add_option("SESSION", options.session, "Its number in vramctl status")
      ->required()
      ->type_name(" ")
      ->check(CLI::Validator(CLI::PositiveNumber).description(""));
  limit->add_option("SIZE", options.size, "Most memory on each GPU, such as 12GiB; policy: as the policy says")
      ->required()
      ->type_name(" ")
      ->check([](const std::string& text) {
        if (text == "policy") return std::string{};
        const auto amount = policy::check_amount(text);
        if (!amount) return amount.error().what + "; " + amount.error().instead;
        return amount->is_percent ? std::string("a share of which GPU? write a size such as 12GiB") : std::string{};
      });
  add_socket(*limit, options.socket);
  limit->footer(
      "Nothing is taken from the session; it gets no more until it holds less. For root and the daemon's own user; others may "
      "lower\n"
      "the limit of a session of their own. Exit codes: 0 done, 1 refused or no daemon.");
}

void add_policy(CLI::App& app, PolicyCheckOptions& options, ReloadOptions& reload) {
  CLI::App* policy = app.add_subcommand("policy", "Work with policy files");
  policy->require_subcommand(1);
  CLI::App* check = policy->add_subcommand("check", "Say everything that is wrong with policy files");
  check->add_option("FILE", options.files, "Policy files; - is standard input")->required()->type_name(" ");
  check->add_flag("--json", options.json, "Print the problems as JSON");
  check->add_flag("--strict", options.strict, "Warnings count as findings");
  check->footer("Exit codes: 0 good, 1 at least one file has an error, 2 wrong usage.");
  CLI::App* again = policy->add_subcommand("reload", "Let the daemon read its policy file again");
  add_socket(*again, reload.socket);
  again->footer("Exit codes: 0 done, 1 the file has errors and the old policy holds, refused, or no daemon.");
}

void add_completion(CLI::App& app, CompletionOptions& options) {
  CLI::App* completion = app.add_subcommand("completion", "Print a script that completes vramctl's commands and options");
  completion->add_option("SHELL", options.shell, "Which shell")->required()->type_name("NAME")->check(one_of(kShells));
  completion->footer("Example: source <(vramctl completion bash)");
}

void add_probe(CLI::App& app, ProbeOptions& options) {
  CLI::App* probe = app.add_subcommand(kProbeCommand, "");
  probe->group("");  // not in the help
  probe->add_option("what", options.what)->required();
  probe->add_option("library", options.library)->required();
}

}  // namespace

std::shared_ptr<CLI::App> make_application(Options& options) {
  auto app = std::make_shared<CLI::App>("Command line of vramd, the caching GPU memory allocator daemon", "vramctl");
  app->formatter(std::make_shared<HelpText>());
  app->set_version_flag("--version", "vramctl " VRAMD_VERSION);
  app->require_subcommand(1);
  add_run(*app, options.run);
  add_status(*app, options.status);
  add_doctor(*app, options.doctor);
  add_calibrate(*app, options.calibrate);
  add_policy(*app, options.policy_check, options.reload);
  add_who(*app, options.who);
  add_ps(*app, options.ps);
  add_trim(*app, options.trim);
  add_limit(*app, options.limit);
  add_completion(*app, options.completion);
  add_probe(*app, options.probe);
  app->footer("vramctl COMMAND --help says more. Exit codes: 0 ok, 1 finding, 2 wrong usage or configuration.");
  return app;
}

}  // namespace vramd::ctl
