#include "tools/bench/daemon.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "allocator/base/clock.hpp"
#include "tools/bench/samples.hpp"

namespace vramd::bench {
namespace {

void wait_readable(int socket) {
  if (!protocol::wait_readable(socket, MonotonicClock{}.now() + seconds(5))) throw std::runtime_error("the daemon is silent");
}

// "GPU-" and 32 digits with dashes among them.
protocol::Uuid uuid_of(const std::string& text) {
  protocol::Uuid uuid;
  std::size_t nibble = 0;
  for (const char c : text.substr(4)) {
    if (c == '-' || nibble == 32) continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    uuid.bytes[nibble / 2] = static_cast<std::uint8_t>(uuid.bytes[nibble / 2] * 16 + digit);
    ++nibble;
  }
  return uuid;
}

std::string contents(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

}  // namespace

void wait_for_end(pid_t child) {
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Daemon::Daemon(const std::string& build, const std::string& policy, const Variables& environment)
    : folder_("/dev/shm/vramd-bench-daemon-" + std::to_string(::getpid())), socket_(folder_ + "/vramd.sock") {
  std::filesystem::create_directory(folder_);
  std::ofstream(folder_ + "/policy.json") << policy;
  start(build, environment);
  const Nanos deadline = MonotonicClock{}.now() + seconds(10);
  while (!ask()) {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) throw std::runtime_error("the daemon has ended: " + folder_ + "/log");
    if (MonotonicClock{}.now() > deadline) throw std::runtime_error("the daemon does not come up");
    ::usleep(5000);
  }
}

void Daemon::start(const std::string& build, const Variables& environment) {
  const std::string program = build + "/bin/vramd", log = folder_ + "/log", policy = folder_ + "/policy.json";
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("no process");
  if (pid_ != 0) return;
  ::setenv("SIM_DIR", folder_.c_str(), 1);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (std::freopen(log.c_str(), "w", stderr) == nullptr) ::_exit(127);
  ::execl(program.c_str(), "vramd", "--sim", kProfile, "--socket", socket_.c_str(), "--config", policy.c_str(),
          "--web.listen-address", "127.0.0.1:0", "--log-level", "error", nullptr);
  ::_exit(127);
}

bool Daemon::ask() {
  const auto connected = protocol::connect_socket(socket_.c_str());
  if (!connected) return false;
  const UniqueFd socket(*connected);
  auto hello = protocol::make<protocol::Hello>(1);
  hello.role = protocol::Role::admin;
  (void)protocol::send_message(socket.get(), hello);
  (void)protocol::send_message(socket.get(), protocol::make<protocol::StatusRequest>(2));
  for (int packets = 0; packets < 2; ++packets) {
    wait_readable(socket.get());
    unsigned char buffer[protocol::kMaxMessage];
    auto received = protocol::receive_packet(socket.get(), buffer, sizeof buffer);
    if (!received) return false;
    if (received->fd_count != 1) continue;
    const UniqueFd status(received->fds[0]);
    const auto json = nlohmann::json::parse(contents(status.get()));
    gpu_ = uuid_of(json["devices"][0]["uuid"]);
    driver_version_ = json["driver_version"];
    return true;
  }
  return false;
}

Daemon::~Daemon() {
  ::kill(pid_, SIGTERM);
  wait_for_end(pid_);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

SessionClient::SessionClient(const Daemon& daemon) {
  const auto connected = protocol::connect_socket(daemon.socket().c_str());
  if (!connected) throw std::runtime_error("the daemon takes no session");
  socket_ = UniqueFd(*connected);
  auto hello = protocol::make<protocol::Hello>(0);
  hello.driver_version = daemon.driver_version();
  hello.device_count = 1;
  hello.devices[0] = daemon.gpu();
  const auto reply = call<protocol::HelloReply>(hello);
  if (reply.devices[0].source != protocol::Source::daemon) throw std::runtime_error("the daemon lends nothing");
}

template <class Reply, class Request>
Reply SessionClient::call(Request request) {
  request.header.request = ++request_;
  if (!protocol::send_message(socket_.get(), request)) throw std::runtime_error("the daemon is gone");
  alignas(8) unsigned char buffer[protocol::kMaxMessage];
  wait_readable(socket_.get());
  auto received = protocol::receive_packet(socket_.get(), buffer, sizeof buffer);
  if (!received) throw std::runtime_error("the daemon is gone");
  protocol::close_all(*received);
  Reply reply;
  if (!protocol::decode(buffer, received->size, reply) || reply.header.status != protocol::Status::ok)
    throw std::runtime_error("the daemon refuses");
  return reply;
}

std::uint64_t SessionClient::take(std::uint64_t bytes) {
  auto grant = protocol::make<protocol::Grant>(0);
  grant.bytes = bytes;
  const auto reply = call<protocol::GrantReply>(grant);
  auto received = protocol::make<protocol::Acknowledge>(0);
  received.chunk = reply.chunk;
  if (!protocol::send_message(socket_.get(), received)) throw std::runtime_error("the daemon is gone");
  return reply.chunk;
}

void SessionClient::give_back(const std::uint64_t* chunks, std::uint32_t count) {
  auto back = protocol::make<protocol::GiveBack>(0);
  back.count = count;
  std::copy(chunks, chunks + count, back.chunks);
  while (!protocol::send_message(socket_.get(), back)) {
    if (!protocol::wait_writable(socket_.get(), MonotonicClock{}.now() + seconds(5)))
      throw std::runtime_error("the daemon is gone");
  }
}

double SessionClient::grant_and_return(std::uint64_t bytes) {
  const double begin = now();
  const std::uint64_t chunk = take(bytes);
  give_back(&chunk, 1);
  return now() - begin;
}

protocol::MemoryInfoReply SessionClient::memory_info() {
  return call<protocol::MemoryInfoReply>(protocol::make<protocol::MemoryInfo>(0));
}

DeafClient::DeafClient(const Daemon& daemon) : SessionClient(daemon) {
  const auto question = protocol::make<protocol::MemoryInfo>(1);
  while (protocol::send_message(socket_.get(), question)) {
  }
}

}  // namespace vramd::bench
