#include "daemon/daemon.hpp"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <optional>

#include "daemon/broker.hpp"
#include "daemon/configuration.hpp"
#include "daemon/driver_library.hpp"
#include "daemon/http.hpp"
#include "daemon/log.hpp"
#include "daemon/notify.hpp"
#include "daemon/server.hpp"
#include "daemon/simulation.hpp"
#include "daemon/socket_file.hpp"
#include "daemon/status.hpp"
#include "daemon/text.hpp"

namespace vramd {
namespace {

namespace asio = boost::asio;

// How often the driver is asked for its free bytes when nothing else asks.
constexpr auto kRefresh = std::chrono::milliseconds(250);
// SIGTERM ends the daemon within two seconds, whatever the driver does.
constexpr Nanos kStopTime = milliseconds(1500);

constexpr const char* kDriverAdvice =
    "install the GPU driver, name the library with --driver PATH, or try a simulated GPU with --sim rtx-a5000-24g";
// The simulator says on stderr what it refuses. It is silent about what it can't know to be a slip.
constexpr const char* kSimulatedAdvice = "if no line above says why, look at CUDA_VISIBLE_DEVICES and --sim-dir";

std::int64_t now_since_1970() { return static_cast<std::int64_t>(::time(nullptr)); }

// Raises the soft limit to the hard one and returns it.
std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// Differs between two lives of the daemon, and is exact in JSON readers that know doubles only.
std::uint64_t make_epoch() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000;
}

class Daemon {
 public:
  explicit Daemon(const Options& options) : options_(options), signals_(loop_), refresh_(loop_) {}

  Try<void> start();
  int run();

 private:
  Try<void> read_policy();
  Try<void> open_devices();
  Try<void> open_web();
  void wait_for_signal();
  bool reload();  // whether the file is good
  void stop();
  void schedule_refresh();
  Snapshot snapshot() const;

  const Options options_;
  asio::io_context loop_{1};
  asio::signal_set signals_;
  asio::steady_timer refresh_;
  policy::Policy policy_;
  std::optional<Simulation> simulation_;
  OpenDriver driver_;
  Users users_;
  std::unique_ptr<Broker> broker_;
  std::optional<SocketFile> socket_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<HttpServer> http_;
  const Nanos started_ = MonotonicClock{}.now();
  const std::int64_t started_since_1970_ = now_since_1970();
  std::int64_t reload_success_time_ = started_since_1970_;
  bool reload_successful_ = true;
  std::uint64_t reloads_ = 0;
  bool ready_ = false;
  bool ended_cleanly_ = true;
};

Try<void> Daemon::read_policy() {
  Configuration configuration = read_configuration(options_.config);
  for (const std::string& line : configuration.warnings) log::warning(line);
  if (configuration.policy) {
    policy_ = std::move(*configuration.policy);
    return {};
  }
  std::string all;
  for (const std::string& line : configuration.errors) all += line + "\n";
  return trouble(kExitUsage,
                 text(all, options_.config, " is not a valid policy; correct it, or start without it (--config, VRAMD_CONF)"));
}

Try<void> Daemon::open_devices() {
  std::string library = options_.driver;
  if (!options_.sim.empty()) {
    auto chosen = choose_simulation(options_.sim, options_.sim_directory);
    if (!chosen) return tl::unexpected(chosen.error());
    simulation_ = std::move(*chosen);
    enter(*simulation_);
    library = simulation_->library;
  }
  auto opened = open_driver(library, simulation_ ? kSimulatedAdvice : kDriverAdvice);
  if (!opened && simulation_) return trouble(kExitUsage, text("--sim ", options_.sim, ": ", opened.error().message));
  if (!opened) return tl::unexpected(opened.error());
  driver_ = std::move(*opened);

  const std::size_t fds_per_device = raise_descriptor_limit() / 2 / driver_.devices.size();
  const auto post = [this](std::function<void()> done) { asio::post(loop_, std::move(done)); };
  const auto answer = [this](SessionId session, std::uint32_t request, const GrantAnswer& grant) {
    broker_->answer_grant(session, request, grant);
  };
  std::vector<std::unique_ptr<Device>> devices;
  for (const DeviceFacts& facts : driver_.devices) {
    devices.push_back(std::make_unique<Device>(driver_.calls, facts, policy_, fds_per_device, post, answer));
    devices.back()->start();
    log::info(text("GPU ", facts.index, ": ", facts.name, ", ", facts.uuid_text, ", ", facts.total.value >> 20, " MiB, ",
                   devices.back()->lends() ? "chunks by the daemon" : "no chunks by the daemon"));
  }
  broker_ = std::make_unique<Broker>(std::move(devices), driver_.version, policy_, make_epoch());
  broker_->status_text = [this] { return status_json(snapshot()); };
  broker_->reload = [this] { return reload(); };
  broker_->call_after = [this](Nanos time, std::function<void()> call) {
    const auto timer = std::make_shared<asio::steady_timer>(loop_, std::chrono::nanoseconds(time.value));
    timer->async_wait([timer, call = std::move(call)](const boost::system::error_code& error) {
      if (!error) call();
    });
  };
  return {};
}

Try<void> Daemon::open_web() {
  const std::string web = options_.web_address.empty() ? policy_.metrics_listen : options_.web_address;
  auto http = HttpServer::listen(
      loop_, web, [this](std::string_view path) { return answer_page(path, ready_, [this] { return snapshot(); }); });
  if (!http) return tl::unexpected(http.error());
  http_ = std::move(*http);
  return {};
}

Try<void> Daemon::start() {
  ::signal(SIGPIPE, SIG_IGN);
  boost::system::error_code error;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) signals_.add(number, error);
  if (auto ok = read_policy(); !ok) return ok;
  // The addresses first: a second daemon must not touch the GPUs. They are answered once everything stands.
  auto socket = SocketFile::listen(options_.socket);
  if (!socket) return tl::unexpected(socket.error());
  socket_.emplace(std::move(*socket));
  if (auto ok = open_web(); !ok) return ok;
  if (auto ok = open_devices(); !ok) return ok;
  server_ = std::make_unique<Server>(loop_, socket_->fd(), *broker_, users_);
  wait_for_signal();
  schedule_refresh();
  ready_ = true;
  log::info(text("vramd ", VRAMD_VERSION, ": socket ", socket_->path(), ", http://", http_->address(), "/, policy ",
                 options_.config.empty() ? "built in" : options_.config));
  notify_service_manager("READY=1");
  return {};
}

int Daemon::run() {
  loop_.run();
  // What is ready now are the ends of connections: run, they let go of each other.
  loop_.restart();
  loop_.poll();
  if (ended_cleanly_) return 0;
  log::error("a GPU's driver call does not end: leaving without it");
  socket_.reset();  // removes the file
  ::_exit(0);       // the stuck thread cannot be joined
}

void Daemon::wait_for_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) return;
    if (number != SIGHUP) return stop();
    reload();
    wait_for_signal();
  });
}

bool Daemon::reload() {
  notify_service_manager(reloading_state());
  Configuration configuration = read_configuration(options_.config);
  for (const std::string& line : configuration.warnings) log::warning(line);
  for (const std::string& line : configuration.errors) log::error(line);
  reload_successful_ = configuration.policy.has_value();
  if (reload_successful_) {
    if (configuration.policy->metrics_listen != policy_.metrics_listen && options_.web_address.empty())
      log::warning("metrics.listen has changed: it takes effect at the next start");
    policy_ = std::move(*configuration.policy);
    users_.forget();
    broker_->set_policy(policy_);
    reload_success_time_ = now_since_1970();
    ++reloads_;
    log::info("policy read again; limits hold for later grants");
  } else {
    log::error(text(options_.config, " is not a valid policy: the old one stays in force"));
  }
  notify_service_manager("READY=1");
  return reload_successful_;
}

void Daemon::stop() {
  log::info("stopping");
  notify_service_manager("STOPPING=1");
  ready_ = false;
  server_->stop();
  http_->stop();
  ended_cleanly_ = broker_->stop(MonotonicClock{}.now() + kStopTime);
  loop_.stop();
}

void Daemon::schedule_refresh() {
  refresh_.expires_after(kRefresh);
  refresh_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    broker_->refresh_devices();
    schedule_refresh();
  });
}

Snapshot Daemon::snapshot() const {
  Snapshot values;
  values.version = VRAMD_VERSION;
  values.pid = ::getpid();
  values.uptime_seconds = (MonotonicClock{}.now() - started_).value / 1'000'000'000;
  values.start_time_seconds = started_since_1970_;
  values.simulated = simulation_.has_value();
  if (std::error_code error; !options_.config.empty())
    values.config_file = std::filesystem::absolute(options_.config, error).string();
  values.reloads = reloads_;
  values.last_reload_successful = reload_successful_;
  values.last_reload_success_time = reload_success_time_;
  values.http = http_ == nullptr ? "" : http_->address();
  if (simulation_) values.environment = simulation_->environment;
  if (server_ != nullptr) values.dropped = server_->dropped();
  broker_->fill(values);
  return values;
}

int check_configuration(const Options& options) {
  const Configuration configuration = read_configuration(options.config);
  for (const std::string& line : configuration.errors) ::fprintf(stderr, "%s\n", line.c_str());
  for (const std::string& line : configuration.warnings) ::fprintf(stderr, "%s\n", line.c_str());
  if (!configuration.policy) return kExitUsage;
  ::printf("%s: ok\n", options.config.empty() ? "built-in policy" : options.config.c_str());
  return 0;
}

}  // namespace

int run_daemon(const Options& options) {
  log::set_level(options.log_level);
  if (options.check_config) return check_configuration(options);
  Daemon daemon(options);
  if (auto started = daemon.start(); !started) {
    ::fprintf(stderr, "vramd: %s\n", started.error().message.c_str());
    return started.error().exit_code;
  }
  return daemon.run();
}

}  // namespace vramd
