// grant: what a warm chunk costs a session, return included, beside a bare echo of a packet with a descriptor.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "allocator/base/clock.hpp"
#include "allocator/base/unique_fd.hpp"
#include "tools/bench/bench.hpp"
#include "tools/bench/daemon.hpp"

namespace vramd::bench {
namespace {

constexpr std::uint64_t kChunk = 32u << 20;
constexpr int kBatch = 50;  // rounds before the peer has its turn

// Answers packets with a descriptor each, from behind epoll, in a process of its own: what any daemon costs at the least.
class Echo {
 public:
  Echo() {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) throw std::runtime_error("no socket pair");
    socket_ = UniqueFd(pair[0]);
    const UniqueFd served(pair[1]);
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("no process");
    if (child_ == 0) {
      socket_.reset();
      serve(served.get());
    }
  }
  ~Echo() {
    socket_.reset();
    wait_for_end(child_);
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  double round() {
    char packet[64] = {};
    const double begin = now();
    if (::send(socket_.get(), packet, sizeof packet, 0) != sizeof packet) throw std::runtime_error("echo: send");
    pollfd item{socket_.get(), POLLIN, 0};
    (void)::poll(&item, 1, 1000);
    auto received = protocol::receive_packet(socket_.get(), packet, sizeof packet);
    if (!received || received->fd_count != 1) throw std::runtime_error("echo: no answer");
    protocol::close_all(*received);
    return now() - begin;
  }

 private:
  [[noreturn]] static void serve(int socket) {
    const UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC)), waiting(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = EPOLLIN;
    (void)::epoll_ctl(waiting.get(), EPOLL_CTL_ADD, socket, &event);
    char packet[64];
    for (;;) {
      if (::epoll_wait(waiting.get(), &event, 1, -1) < 0) continue;
      const ssize_t size = ::recv(socket, packet, sizeof packet, 0);
      if (size <= 0) ::_exit(0);
      const int fd = file.get();
      (void)protocol::send_packet(socket, packet, static_cast<std::size_t>(size), &fd, 1);
    }
  }

  UniqueFd socket_;
  pid_t child_ = -1;
};

// Many sessions at it at once, each as fast as it can, for a time.
struct Crowd {
  Samples rounds;
  double each = 0;  // nanoseconds of the whole per grant
};

Crowd run_crowd(const Daemon& daemon, int sessions, Nanos time) {
  std::vector<std::unique_ptr<SessionClient>> clients;
  for (int i = 0; i < sessions; ++i) clients.push_back(std::make_unique<SessionClient>(daemon));
  std::vector<Samples> samples(clients.size());
  std::atomic<bool> go{false}, failed{false};
  std::atomic<double> end{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    threads.emplace_back([&, i] {
      while (!go) std::this_thread::yield();
      try {
        while (now() < end) samples[i].add(clients[i]->grant_and_return(kChunk));
      } catch (const std::exception&) {
        failed = true;
      }
    });
  }
  const double begin = now();
  end = begin + static_cast<double>(time.value);
  go = true;
  for (std::thread& thread : threads) thread.join();
  if (failed) throw std::runtime_error("a session lost the daemon");
  Crowd crowd;
  for (const Samples& one : samples) crowd.rounds.add(one);
  crowd.each = (now() - begin) / static_cast<double>(crowd.rounds.size());
  return crowd;
}

Row single(const char* name, double value, const char* unit, double at_most) {
  Row row;
  row.name = name;
  row.unit = unit;
  row.samples.add(value);
  row.at_most = at_most;
  return row;
}

// Turns of grants and of echoes; what drifts meets both.
void measure_one(const Daemon& daemon, Echo& echo, int batches, Samples& grants, Samples& echoes) {
  SessionClient client(daemon);
  (void)client.grant_and_return(kChunk);  // the chunk is created here, unless the daemon keeps none
  for (int batch = 0; batch < batches; ++batch) {
    for (int i = 0; i < kBatch; ++i) grants.add(client.grant_and_return(kChunk) / 1e3);
    for (int i = 0; i < kBatch; ++i) echoes.add(echo.round() / 1e3);
  }
}

}  // namespace

Result run_grant(const Options& options) {
  const Nanos time = seconds(options.long_run ? 10 : 1);
  Result result{"grant", "simulated GPU", kProfile, {}};
  Echo echo;
  {
    const Daemon daemon(options.folder, R"({"version": 1, "pool": {"retain": "100%", "headroom": "0B"}})", {});
    Row one;
    Samples echoes;
    measure_one(daemon, echo, options.long_run ? 400 : 60, one.samples, echoes);
    one.name = "warm grant of 32 MiB and return, 1 session";
    one.unit = "us";
    one.peer = Peer{"echo with a descriptor", echoes.percentile(50)};
    one.at_most = 2 * echoes.percentile(50);
    const double p99 = one.samples.percentile(99);
    result.rows.push_back(one);
    result.rows.push_back(single("its p99", p99, "us", 10 * echoes.percentile(50)));

    const Crowd eight = run_crowd(daemon, 8, time);
    result.rows.push_back(single("8 sessions at once, time per grant", eight.each / 1e3, "us", 1e6 / 30e3));
    const Crowd sixty_four = run_crowd(daemon, 64, time);
    result.rows.push_back(single("64 sessions at once, time per grant", sixty_four.each / 1e3, "us", 1e6 / 30e3));

    // One that asks and never reads, before and among eight that work.
    const auto with_deaf = [&] {
      const DeafClient deaf(daemon);
      return run_crowd(daemon, 8, time).rounds.percentile(99);
    };
    const auto without = [&] { return run_crowd(daemon, 8, time).rounds.percentile(99); };
    Samples ratios;
    for (int i = 0; i < 5; ++i) {
      const double a = i % 2 == 0 ? without() : 0, b = with_deaf(), c = i % 2 == 0 ? a : without();
      ratios.add(b / c);
    }
    result.rows.push_back(single("p99 of 8 sessions beside a deaf one, over without", ratios.percentile(50), "x", 1.2));
  }
  // The control: a daemon that keeps nothing has to ask the driver for each chunk.
  const Daemon daemon(options.folder, R"({"version": 1, "pool": {"retain": "0B", "headroom": "0B"}})", {{"SIM_TIME", "1"}});
  Row cold;
  Samples echoes;
  measure_one(daemon, echo, 6, cold.samples, echoes);
  cold.name = "the same with nothing warm";
  cold.unit = "us";
  cold.at_most = 2 * echoes.percentile(50);
  cold.is_control = true;
  result.rows.push_back(cold);
  return result;
}

}  // namespace vramd::bench
