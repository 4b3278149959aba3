// The shim's side of the protocol against daemons that misbehave: nothing may hang, leak or be believed.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <pthread.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "allocator/base/clock.hpp"
#include "allocator/base/unique_fd.hpp"
#include "shim/client/connection.hpp"
#include "tests/support/catch.hpp"

using namespace vramd;
using namespace vramd::protocol;
using vramd::shim::Connection;

namespace {

// Accepts one client and lets `script` answer each packet; ends when the client closes or the script returns false.
class FakeDaemon {
 public:
  using Script = std::function<bool(int socket, const Header& request)>;

  explicit FakeDaemon(Script script) {
    char folder[] = "/tmp/vramd-connection-XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    folder_ = folder;
    path = folder_ + "/s";
    listener_ = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    std::strcpy(where.sun_path, path.c_str());
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) == 0);
    REQUIRE(::listen(listener_.get(), 1) == 0);
    thread_ = std::thread([this, script] {
      const UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
      client_ = client.get();
      unsigned char buffer[kMaxMessage];
      for (;;) {
        const ssize_t got = ::recv(client.get(), buffer, sizeof buffer, 0);
        Header header;
        if (got <= 0 || !decode_header(buffer, static_cast<std::size_t>(got), header) || !script(client.get(), header)) return;
      }
    });
  }
  ~FakeDaemon() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    if (client_ >= 0) ::shutdown(client_, SHUT_RDWR);  // a Connection outlives everything: it never closes by itself
    thread_.join();
    std::filesystem::remove_all(folder_);
  }

  std::string path;

 private:
  std::string folder_;
  UniqueFd listener_;
  std::atomic<int> client_ = -1;
  std::thread thread_;
};

template <class M>
bool reply(int socket, M message) {
  return send_message(socket, message).has_value();
}

bool greet(int socket, const Header& request) { return reply(socket, make<HelloReply>(request.request)); }

int no_line[2];

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

}  // namespace

TEST_CASE("Connection: nobody listens") {
  Connection connection;
  auto opened = connection.open("/nonexistent/vramd.sock", make<Hello>(0), no_line);
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().code == ErrorCode::disconnected);
  auto too_long = connection.open(std::string(200, 'x').c_str(), make<Hello>(0), no_line);
  REQUIRE_FALSE(too_long.has_value());
  CHECK(too_long.error().code == ErrorCode::invalid_argument);
}

TEST_CASE("Connection: a daemon that refuses") {
  FakeDaemon daemon([](int s, const Header& h) {
    auto refusal = make<HelloReply>(h.request, Status::too_many);
    refusal.limit_bytes[1] = 5;
    return reply(s, refusal);
  });
  Connection connection;
  auto opened = connection.open(daemon.path.c_str(), make<Hello>(0), no_line);
  REQUIRE(opened.has_value());
  CHECK(opened->header.status == Status::too_many);
  CHECK(opened->limit_bytes[1] == 5);
  CHECK_FALSE(connection.connected());
}

TEST_CASE("Connection: more than the socket holds waits for a daemon that is slow, nothing is lost") {
  constexpr int kMessages = 2000;
  std::atomic<int> received = 0;
  FakeDaemon daemon([&](int s, const Header& h) {
    if (h.type == Type::hello) return greet(s, h);
    if (received == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (h.type == Type::give_back) ++received;
    return h.type == Type::give_back || reply(s, make<MemoryInfoReply>(h.request));
  });
  Connection connection;
  REQUIRE(connection.open(daemon.path.c_str(), make<Hello>(0), no_line).has_value());
  for (int i = 0; i < kMessages; ++i) connection.post(make<GiveBack>(0));
  CHECK(connection.call<MemoryInfoReply>(make<MemoryInfo>(0)).has_value());  // read after all the others
  CHECK(received == kMessages);
}

// A thread of the program may be cancelled while it waits for the daemon. The connection's lock must not go with it.
// Not under the address sanitizer: its own end of a cancelled thread trips over the marks of the frames that were left.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("Connection: a thread that is cancelled in a call leaves the connection usable") {
  FakeDaemon daemon([](int s, const Header& h) {
    if (h.type == Type::hello) return greet(s, h);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return reply(s, make<MemoryInfoReply>(h.request));
  });
  static Connection connection;  // outlives the threads, whatever happens
  REQUIRE(connection.open(daemon.path.c_str(), make<Hello>(0), no_line).has_value());
  pthread_t caller{};
  const auto call_and_end = [](void*) -> void* {
    (void)connection.call<MemoryInfoReply>(make<MemoryInfo>(0));
    pthread_testcancel();  // the first point at which it may end
    return nullptr;
  };
  REQUIRE(pthread_create(&caller, nullptr, call_and_end, nullptr) == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // it waits now
  REQUIRE(pthread_cancel(caller) == 0);
  void* ended = nullptr;
  REQUIRE(pthread_join(caller, &ended) == 0);
  CHECK(ended == PTHREAD_CANCELED);
  std::atomic<int> answered = 0;
  std::thread next([&] { answered = connection.call<MemoryInfoReply>(make<MemoryInfo>(0)).has_value() ? 1 : 2; });
  for (int i = 0; i < 5000 && answered == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (answered == 0) ::abort();  // it hangs: a join would hang too
  next.join();
  CHECK(answered == 1);
}
#endif

TEST_CASE("Connection: after the last message there is no daemon") {
  std::atomic<bool> told = false;
  {
    FakeDaemon daemon([&](int s, const Header& h) {
      told = told || h.type == Type::goodbye;
      return h.type == Type::hello ? greet(s, h) : true;
    });
    Connection connection;
    REQUIRE(connection.open(daemon.path.c_str(), make<Hello>(0), no_line).has_value());
    connection.post_last(make<Goodbye>(0));
    CHECK_FALSE(connection.connected());
    auto after = connection.call<MemoryInfoReply>(make<MemoryInfo>(0));
    REQUIRE_FALSE(after.has_value());
    CHECK(after.error().code == ErrorCode::disconnected);
    for (int i = 0; i < 2000 && !told; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(told);
}

TEST_CASE("Connection: a deaf daemon costs one deadline, once") {
  FakeDaemon daemon([](int s, const Header& h) { return h.type == Type::hello ? greet(s, h) : true; });
  Connection connection;
  REQUIRE(connection.open(daemon.path.c_str(), make<Hello>(0), no_line).has_value());
  const Nanos begin = MonotonicClock{}.now();
  auto info = connection.call<MemoryInfoReply>(make<MemoryInfo>(0));
  REQUIRE_FALSE(info.has_value());
  CHECK(info.error().code == ErrorCode::timeout);
  CHECK(MonotonicClock{}.now() - begin >= Connection::kDeadline);
  auto again = connection.call<MemoryInfoReply>(make<MemoryInfo>(0));
  REQUIRE_FALSE(again.has_value());
  CHECK(again.error().code == ErrorCode::disconnected);
}

TEST_CASE("Connection: replies that make no sense end it") {
  const std::function<bool(int, const Header&)> answers[] = {
      [](int s, const Header&) { return ::send(s, "garbage", 7, 0) == 7; },
      [](int s, const Header& h) { return reply(s, make<MemoryInfoReply>(h.request + 1)); },  // of another request
      [](int s, const Header& h) { return reply(s, make<GrantReply>(h.request)); },           // of another type
      [](int s, const Header& h) {
        auto big = make<MemoryInfoReply>(h.request);
        big.header.struct_size = 16;
        return ::send(s, &big, 16, 0) == 16;  // too short for what it says to be
      },
      [](int, const Header&) { return false; },  // closes
  };
  for (const auto& answer : answers) {
    FakeDaemon daemon([&](int s, const Header& h) { return h.type == Type::hello ? greet(s, h) : answer(s, h); });
    Connection connection;
    REQUIRE(connection.open(daemon.path.c_str(), make<Hello>(0), no_line).has_value());
    CHECK_FALSE(connection.call<MemoryInfoReply>(make<MemoryInfo>(0)).has_value());
    CHECK_FALSE(connection.connected());
  }
}

TEST_CASE("Connection: descriptors that were not asked for are closed") {
  const std::size_t before = open_descriptors();
  {
    FakeDaemon daemon([](int s, const Header& h) {
      if (h.type == Type::hello) return greet(s, h);
      const UniqueFd extra(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      const int two[] = {extra.get(), extra.get()};
      return send_message(s, make<GrantReply>(h.request), two, 2).has_value();
    });
    Connection connection;
    REQUIRE(connection.open(daemon.path.c_str(), make<Hello>(0), no_line).has_value());
    int fd = 5;
    CHECK_FALSE(connection.call<GrantReply>(make<Grant>(0), &fd).has_value());
    CHECK(fd == -1);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("Connection: a refusal is a value and the connection goes on") {
  FakeDaemon daemon([](int s, const Header& h) {
    if (h.type == Type::hello) return greet(s, h);
    if (h.type == Type::grant) return reply(s, make<ErrorReply>(h.request, Status::unsupported));
    return reply(s, make<MemoryInfoReply>(h.request));
  });
  Connection connection;
  REQUIRE(connection.open(daemon.path.c_str(), make<Hello>(0), no_line).has_value());
  auto grant = connection.call<GrantReply>(make<Grant>(0));
  REQUIRE(grant.has_value());
  CHECK(grant->header.status == Status::unsupported);
  CHECK(connection.call<MemoryInfoReply>(make<MemoryInfo>(0)).has_value());
}

TEST_CASE("Connection: a program that closes all descriptors and reuses the number keeps its file") {
  FakeDaemon daemon([](int s, const Header& h) { return greet(s, h); });
  Connection connection;
  REQUIRE(connection.open(daemon.path.c_str(), make<Hello>(0), no_line).has_value());
  int socket = -1;
  for (int fd = 100; fd < 1024 && socket < 0; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) socket = fd;
  }
  REQUIRE(socket >= 100);
  const UniqueFd file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  REQUIRE(::dup2(file.get(), socket) == socket);
  CHECK_FALSE(connection.call<MemoryInfoReply>(make<MemoryInfo>(0)).has_value());
  CHECK_FALSE(connection.connected());
  CHECK(::fcntl(socket, F_GETFD) >= 0);          // still open: it is the program's
  CHECK(::lseek(file.get(), 0, SEEK_END) == 0);  // and nothing was written to it
  ::close(socket);
}
