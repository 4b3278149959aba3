// The broker over real devices and actor threads on a GPU of bookkeeping: what sessions get when things go
// wrong.
#include <condition_variable>
#include <deque>
#include <optional>

#include "allocator/protocol/socket.hpp"
#include "daemon/broker.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_gpu.hpp"

using namespace vramd;
using namespace vramd::literals;
using protocol::Status;

namespace {

constexpr int kDriverVersion = 13000;

// Stands in for the loop: runs what the actors post, in this thread.
class Loop {
 public:
  DeviceActor::Post post() {
    return [this](std::function<void()> done) {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(done));
      changed_.notify_all();
    };
  }
  void run_one() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !queue_.empty(); }));
    const auto next = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    next();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
};

struct Bench {
  explicit Bench(Bytes capacity, policy::Policy policy = {}) : gpu(capacity), driver(gpu.table()) {
    policy.pool_retain = {1ull << 30, 0, false};
    policy.pool_headroom = {};
    DeviceFacts facts;
    facts.name = "GPU of bookkeeping";
    facts.total = capacity;
    facts.virtual_memory = true;
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(std::make_unique<Device>(driver, facts, policy, fd_capacity, loop.post(),
                                               [this](SessionId session, std::uint32_t request, const GrantAnswer& answer) {
                                                 broker->answer_grant(session, request, answer);
                                               }));
    devices.back()->start();
    device = devices.back().get();
    broker = std::make_unique<Broker>(std::move(devices), kDriverVersion, policy, 1);
  }
  ~Bench() {
    CHECK(device->pool().check() == nullptr);
    CHECK(broker->stop(MonotonicClock{}.now() + seconds(10)));
    CHECK(gpu.handles() == 0);
    CHECK(gpu.contexts() == 0);
  }
  // Until the actor has done all that it was given.
  void settle() {
    bool done = false;
    device->refresh([&] { done = true; });
    while (!done) loop.run_one();
  }

  static constexpr std::size_t fd_capacity = 2;
  testing::FakeGpu gpu;
  Driver driver;
  Loop loop;
  Device* device = nullptr;
  std::unique_ptr<Broker> broker;
};

// A peer that keeps what the broker sends.
struct Guest {
  Guest(Bench& host, const std::string& user = "anna", unsigned uid = 1000) : bench(host) {
    Peer peer;
    peer.pid = 4711;
    peer.uid = uid;
    peer.user = user;
    peer.container = "host";
    auto hello = protocol::make<protocol::Hello>(1);
    hello.driver_version = kDriverVersion;
    hello.device_count = 1;
    greeting = bench.broker->hello(hello, peer, {[this](const void* packet, std::size_t size, int fd) {
                                     const auto* bytes = static_cast<const unsigned char*>(packet);
                                     packets.push_back({{bytes, bytes + size}, fd >= 0});
                                   }});
    REQUIRE(greeting.keep);
  }
  SessionId id() const { return greeting.session; }
  template <class M>
  void send(const M& message) {
    CHECK(bench.broker->packet(id(), &message, sizeof message).drop == nullptr);
  }
  void ask(Bytes bytes) {
    auto message = protocol::make<protocol::Grant>(++request);
    message.bytes = bytes.value;
    send(message);
  }
  protocol::GrantReply reply() {
    while (packets.empty()) bench.loop.run_one();
    protocol::GrantReply message;
    REQUIRE(protocol::decode(packets.front().bytes.data(), packets.front().bytes.size(), message));
    CHECK(packets.front().brought_fd == (message.header.status == Status::ok));
    packets.pop_front();
    return message;
  }
  protocol::GrantReply grant(Bytes bytes) {
    ask(bytes);
    return reply();
  }
  void acknowledge(std::uint64_t chunk) {
    auto message = protocol::make<protocol::Acknowledge>(0);
    message.chunk = chunk;
    send(message);
  }

  struct Packet {
    std::vector<unsigned char> bytes;
    bool brought_fd;
  };
  Bench& bench;
  Broker::Greeting greeting;
  std::uint32_t request = 0;
  std::deque<Packet> packets;
};

}  // namespace

TEST_CASE("Broker: a driver that fails is told and leaves nothing behind") {
  Bench bench(1_GiB);
  Guest anna(bench);
  bench.gpu.fail_next_create(CUDA_ERROR_UNKNOWN);
  CHECK(anna.grant(32_MiB).header.status == Status::internal);
  bench.gpu.fail_next_export(CUDA_ERROR_UNKNOWN);
  CHECK(anna.grant(32_MiB).header.status == Status::internal);
  CHECK(bench.gpu.handles() == 0);
  CHECK(anna.grant(32_MiB).header.status == Status::ok);
}

TEST_CASE("Broker: a failed export of a warm chunk ends its lease") {
  Bench bench(1_GiB);
  Guest anna(bench);
  std::vector<std::uint64_t> chunks;
  for (int i = 0; i < 4; ++i) {  // two of them without a cached descriptor
    chunks.push_back(anna.grant(32_MiB).chunk);
    anna.acknowledge(chunks.back());
  }
  auto back = protocol::make<protocol::GiveBack>(0);
  back.count = 4;
  for (std::size_t i = 0; i < 4; ++i) back.chunks[i] = chunks[i];
  anna.send(back);
  CHECK(bench.device->pool().totals().cached == 128_MiB);
  bench.gpu.fail_next_export(CUDA_ERROR_UNKNOWN);
  CHECK(anna.grant(32_MiB).header.status == Status::internal);
  bench.settle();
  CHECK(bench.device->pool().totals().leased == 0_B);
  CHECK(bench.gpu.handles() == 3);
  CHECK(bench.device->cached_fds() <= Bench::fd_capacity);
  CHECK(anna.grant(32_MiB).header.status == Status::ok);
}

TEST_CASE("Broker: what the device can hold is never refused") {
  Bench bench(64_MiB);
  Guest anna(bench), bert(bench, "bert", 1001);
  const auto first = anna.grant(32_MiB), second = anna.grant(32_MiB);
  CHECK(anna.grant(2_MiB).header.status == Status::out_of_memory);
  anna.acknowledge(first.chunk);
  auto back = protocol::make<protocol::GiveBack>(0);
  back.count = 1;
  back.chunks[0] = first.chunk;
  anna.send(back);
  const auto other = bert.grant(2_MiB);
  CHECK(other.header.status == Status::ok);
  CHECK(other.flags == protocol::kGrantFresh);
  CHECK(bench.device->pool().totals().leased == 34_MiB);
  CHECK(second.header.status == Status::ok);
}

TEST_CASE("Broker: a session that dies while its chunk is created leaves it fresh for others") {
  Bench bench(1_GiB);
  Guest bert(bench, "bert", 1001);
  {
    Guest anna(bench);
    anna.ask(32_MiB);
    bench.broker->end(anna.id());
    bench.broker->end(anna.id());
  }
  bench.settle();
  CHECK(bench.device->pool().totals().cached == 32_MiB);
  const auto reply = bert.grant(32_MiB);
  CHECK(reply.flags == protocol::kGrantFresh);
  CHECK(bench.gpu.handles() == 1);
}

TEST_CASE("Broker: bytes that the driver keeps after a death are stranded until it lets go") {
  Bench bench(1_GiB);
  Guest anna(bench);
  anna.acknowledge(anna.grant(32_MiB).chunk);
  bench.gpu.hold_released(true);
  bench.broker->end(anna.id());
  CHECK(bench.device->stranded() == 32_MiB);  // on its way
  bench.settle();
  CHECK(bench.gpu.handles() == 0);
  CHECK(bench.device->stranded() == 32_MiB);  // and not given back
  bench.gpu.hold_released(false);
  bench.settle();
  CHECK(bench.device->stranded() == 0_B);
}

TEST_CASE("Broker: a process that has ended is granted nothing, what it gave back counts") {
  Bench bench(1_GiB);
  Guest anna(bench);
  const auto chunk = anna.grant(32_MiB).chunk;
  anna.acknowledge(chunk);
  bench.broker->process_ended(anna.id());
  anna.ask(32_MiB);
  auto back = protocol::make<protocol::GiveBack>(0);
  back.count = 1;
  back.chunks[0] = chunk;
  anna.send(back);
  bench.broker->end(anna.id());
  bench.settle();
  CHECK(bench.device->pool().totals().cached == 32_MiB);
  CHECK(bench.gpu.handles() == 1);
}

TEST_CASE("Broker: goodbye does not make clean what is still held") {
  Bench bench(1_GiB);
  Guest anna(bench);
  anna.acknowledge(anna.grant(32_MiB).chunk);
  anna.send(protocol::make<protocol::Goodbye>(0));
  bench.broker->end(anna.id());
  bench.settle();
  CHECK(bench.device->pool().totals().cached == 0_B);
  CHECK(bench.gpu.handles() == 0);
}

TEST_CASE("Broker: after a goodbye a wish is refused, not ignored") {
  Bench bench(1_GiB);
  Guest anna(bench);
  anna.send(protocol::make<protocol::Goodbye>(0));
  anna.ask(32_MiB);
  REQUIRE(anna.packets.size() == 1);
  protocol::Header header;
  REQUIRE(protocol::decode_header(anna.packets[0].bytes.data(), anna.packets[0].bytes.size(), header));
  CHECK(header.type == protocol::Type::error_reply);
  CHECK(header.status == Status::refused);
}

TEST_CASE("Broker: who is one session too many learns its limit all the same") {
  policy::Policy policy;
  policy.sessions.emplace_back();
  policy.sessions.back().limit = policy::Amount{64ull << 20, 0, false};
  Bench bench(1_GiB, policy);
  std::deque<Guest> guests;
  for (std::size_t i = 0; i < kMaxSessionsPerUser; ++i) guests.emplace_back(bench);
  Peer peer;
  peer.uid = 1000;
  auto hello = protocol::make<protocol::Hello>(1);
  hello.driver_version = kDriverVersion;
  hello.device_count = 1;
  const auto greeting = bench.broker->hello(hello, peer, {});
  CHECK_FALSE(greeting.keep);
  CHECK(greeting.reply.header.status == Status::too_many);
  CHECK(greeting.reply.limit_bytes[0] == 64ull << 20);
  CHECK(greeting.reply.mode == guests[0].greeting.reply.mode);
}

TEST_CASE("Broker: a question about a limit enters nothing and counts refusals") {
  policy::Policy policy;
  policy.sessions.emplace_back();
  policy.sessions.back().limit = policy::Amount{64ull << 20, 0, false};
  Bench bench(1_GiB, policy);
  Guest anna(bench);
  for (const auto& [mebibytes, status] : {std::pair{64, Status::ok}, {65, Status::over_limit}}) {
    auto question = protocol::make<protocol::Charge>(7);
    question.kind = protocol::ChargeKind::question;
    question.bytes = std::int64_t{mebibytes} << 20;
    anna.send(question);
    protocol::ChargeReply reply;
    REQUIRE(protocol::decode(anna.packets.back().bytes.data(), anna.packets.back().bytes.size(), reply));
    CHECK(reply.header.status == status);
  }
  CHECK(bench.device->pool().counts().over_limit == 1);
  CHECK(bench.device->pool().totals().charged == 0_B);
}

TEST_CASE("Broker: a flood of status requests is answered with few statuses, every one after its request") {
  Bench bench(1_GiB);
  Guest anna(bench);
  int written = 0;
  std::function<void()> later;
  bench.broker->status_text = [&] {
    const timespec some_time{0, 2'000'000};
    ::nanosleep(&some_time, nullptr);
    return std::to_string(++written);
  };
  bench.broker->call_after = [&](Nanos time, std::function<void()> call) {
    CHECK(time > Nanos{0});
    CHECK_FALSE(later);
    later = std::move(call);
  };
  for (std::uint32_t i = 0; i < 500; ++i) anna.send(protocol::make<protocol::StatusRequest>(i + 1));
  CHECK(anna.packets.size() == 1);
  REQUIRE(later);
  std::exchange(later, {})();
  CHECK(anna.packets.size() == 500);
  CHECK(written == 2);
}

TEST_CASE("Broker: reading stops at 64 waiting requests") {
  Bench bench(4_GiB);
  Guest anna(bench);
  for (std::uint32_t i = 0; i < kMaxWaiting; ++i) {
    CHECK_FALSE(bench.broker->saturated(anna.id()));
    anna.ask(2_MiB);
  }
  CHECK(bench.broker->saturated(anna.id()));
  for (std::uint32_t i = 0; i < kMaxWaiting; ++i) anna.reply();
  CHECK_FALSE(bench.broker->saturated(anna.id()));
}

namespace {

// A session with a line: what it is asked for, and what it says it holds idle.
struct LineGuest : Guest {
  LineGuest(Bench& host, const std::string& user, unsigned uid) : Guest(host, user, uid) {
    host.broker->set_line(id(),
                          {[this](std::uint32_t number, std::uint32_t, Bytes bytes) { recalls.emplace_back(number, bytes); },
                           [this](std::uint32_t) { return shown; }});
  }
  void take(int count) {
    for (int i = 0; i < count; ++i) {
      chunks.push_back(grant(32_MiB).chunk);
      acknowledge(chunks.back());
    }
  }
  void give(std::size_t count) {
    auto back = protocol::make<protocol::GiveBack>(0);
    for (; count > 0; --count, chunks.pop_back()) back.chunks[back.count++] = chunks.back();
    send(back);
  }
  void answer(std::size_t recall) { send(protocol::make<protocol::Recalled>(recalls.at(recall).first)); }

  Bytes shown;
  std::vector<std::pair<std::uint32_t, Bytes>> recalls;
  std::vector<std::uint64_t> chunks;
};

// Timers, fired by hand.
struct Timers {
  explicit Timers(Bench& bench) {
    bench.broker->call_after = [this](Nanos, std::function<void()> call) { calls.push_back(std::move(call)); };
  }
  void fire_all() {
    for (const auto& call : std::exchange(calls, {})) call();
  }
  std::vector<std::function<void()>> calls;
};

}  // namespace

TEST_CASE("Recall: who lacks memory gets what others hold idle, the one with most is asked first") {
  Bench bench(256_MiB);
  Timers timers(bench);
  LineGuest anna(bench, "anna", 1000), bert(bench, "bert", 1001), carl(bench, "carl", 1000);
  anna.take(2);
  bert.take(6);
  anna.shown = 64_MiB;
  bert.shown = 96_MiB;
  carl.ask(32_MiB);
  bench.settle();
  CHECK(carl.packets.empty());  // waits
  REQUIRE(bert.recalls.size() == 1);
  CHECK(bert.recalls[0].second == 32_MiB);
  CHECK(anna.recalls.empty());
  bert.give(1);  // of another domain: released and created anew
  bert.answer(0);
  const auto reply = carl.reply();
  CHECK(reply.header.status == Status::ok);
  CHECK((reply.flags & protocol::kGrantFresh) != 0);
  CHECK(bench.device->pool().counts().oom == 0);
  timers.fire_all();  // too late to matter
  bench.settle();
  CHECK(carl.packets.empty());
}

TEST_CASE("Recall: several are asked when one has not enough, and a chunk of one's own domain comes as it is") {
  Bench bench(256_MiB);
  Timers timers(bench);
  LineGuest anna(bench, "anna", 1000), bert(bench, "bert", 1001), carl(bench, "carl", 1000);
  anna.take(4);
  bert.take(4);
  anna.shown = 20_MiB;
  bert.shown = 16_MiB;
  carl.ask(32_MiB);
  bench.settle();
  REQUIRE(anna.recalls.size() == 1);
  REQUIRE(bert.recalls.size() == 1);
  CHECK(bert.recalls[0].second == 12_MiB);
  bert.answer(0);  // it had nothing after all
  bench.settle();
  CHECK(carl.packets.empty());
  anna.give(1);
  const auto reply = carl.reply();
  CHECK(reply.header.status == Status::ok);
  CHECK((reply.flags & protocol::kGrantFresh) == 0);
}

TEST_CASE("Recall: refused when all have answered in vain, or when the time is up; then the deaf are left alone for a while") {
  Bench bench(64_MiB);
  Timers timers(bench);
  LineGuest anna(bench, "anna", 1000), bert(bench, "bert", 1001);
  anna.take(2);
  anna.shown = 32_MiB;
  bert.ask(32_MiB);
  bench.settle();
  REQUIRE(anna.recalls.size() == 1);
  anna.answer(0);
  CHECK(bert.reply().header.status == Status::out_of_memory);
  CHECK(bench.device->pool().counts().oom == 1);

  bert.ask(32_MiB);
  bench.settle();
  REQUIRE(anna.recalls.size() == 2);
  CHECK(bert.packets.empty());
  timers.fire_all();
  CHECK(bert.reply().header.status == Status::out_of_memory);
  CHECK(bench.device->pool().counts().oom == 2);
  CHECK(bert.grant(32_MiB).header.status == Status::out_of_memory);  // at once
  CHECK(anna.recalls.size() == 2);
  anna.answer(1);  // late, and no harm
  anna.answer(0);
  bench.settle();
}

TEST_CASE("Recall: a session that dies instead of answering gives its memory all the same, and who waits may die too") {
  Bench bench(64_MiB);
  Timers timers(bench);
  LineGuest anna(bench, "anna", 1000), bert(bench, "bert", 1001), carl(bench, "carl", 1002);
  anna.take(2);
  anna.shown = 64_MiB;
  bert.ask(32_MiB);
  carl.ask(32_MiB);
  bench.settle();
  bench.broker->end(carl.id());
  bench.broker->end(anna.id());
  CHECK(bert.reply().header.status == Status::ok);
  timers.fire_all();
  bench.settle();
  CHECK(carl.packets.empty());
}

TEST_CASE("Recall: nobody is asked for more than he holds, and memory info counts what can be recalled") {
  Bench bench(128_MiB);
  Timers timers(bench);
  LineGuest anna(bench, "anna", 1000), bert(bench, "bert", 1001);
  anna.take(2);
  const auto free_of_bert = [&] {
    bert.send(protocol::make<protocol::MemoryInfo>(9));
    while (bert.packets.empty()) bench.loop.run_one();
    protocol::MemoryInfoReply reply;
    REQUIRE(protocol::decode(bert.packets.front().bytes.data(), bert.packets.front().bytes.size(), reply));
    bert.packets.pop_front();
    return Bytes{reply.free_bytes};
  };
  CHECK(free_of_bert() == 64_MiB);
  anna.shown = 32_MiB;
  CHECK(free_of_bert() == 96_MiB);
  anna.shown = Bytes{UINT64_MAX};
  CHECK(free_of_bert() == 128_MiB);
  bert.take(2);
  bert.ask(32_MiB);
  bench.settle();
  REQUIRE(anna.recalls.size() == 1);
  CHECK(anna.recalls[0].second == 32_MiB);
  anna.give(1);
  CHECK(bert.reply().header.status == Status::ok);
}

TEST_CASE("Scrub: memory that another domain has used is cleared before it is lent, and no other") {
  Bench bench(128_MiB);
  LineGuest anna(bench, "anna", 1000), another_anna(bench, "anna", 1000);
  anna.take(4);
  CHECK(bench.gpu.cleared() == 0_B);
  anna.give(4);
  another_anna.take(4);  // as it is: the same user in the same container
  CHECK(bench.gpu.cleared() == 0_B);
  another_anna.give(2);
  LineGuest bert(bench, "bert", 1001);
  bert.take(1);
  CHECK(bench.gpu.cleared() == 32_MiB);
  CHECK((bench.device->pool().counts().converted) >= 1);
  bert.give(1);
  bert.take(1);
  CHECK(bench.gpu.cleared() == 32_MiB);
  bench.gpu.fail_next_fill(CUDA_ERROR_UNKNOWN);  // what cannot be cleared is not lent
  CHECK(bert.grant(32_MiB).header.status == Status::internal);
  CHECK(bert.grant(32_MiB).header.status == Status::ok);
  CHECK(bench.gpu.cleared() == 64_MiB);
  bench.settle();
}

TEST_CASE("Scrub: always, or never, as the policy says") {
  policy::Policy policy;
  policy.pool_scrub = policy::Scrub::always;
  Bench bench(128_MiB, policy);
  LineGuest anna(bench, "anna", 1000), bert(bench, "bert", 1001);
  anna.take(1);
  anna.give(1);
  anna.take(1);
  CHECK(bench.gpu.cleared() == 64_MiB);
  anna.give(1);
  bench.gpu.fail_next_fill(CUDA_ERROR_UNKNOWN);
  CHECK(anna.grant(32_MiB).header.status == Status::internal);
  bench.settle();
  CHECK(bench.gpu.handles() == 0);
  anna.take(4);
  anna.give(4);
  const Bytes before = bench.gpu.cleared();
  policy.pool_retain = {1ull << 30, 0, false};
  policy.pool_headroom = {};
  policy.pool_scrub = policy::Scrub::driver;
  bench.broker->set_policy(policy);
  bert.take(2);
  CHECK(bench.gpu.cleared() == before);
  bert.give(2);
  policy.pool_scrub = policy::Scrub::domain;
  bench.broker->set_policy(policy);  // nobody gets what the driver was trusted with
  CHECK(bench.device->pool().totals().cached == 0_B);
  bench.settle();
}

namespace {

// An admin's connection: what comes back for an order.
protocol::OrderReply order(Bench& bench, unsigned uid, protocol::Order message) {
  std::optional<protocol::OrderReply> reply;
  const Wire wire{[&](const void* packet, std::size_t size, int) {
    protocol::OrderReply got;
    REQUIRE(protocol::decode(packet, size, got));
    reply = got;
  }};
  CHECK(bench.broker->admin_packet(wire, uid, &message, sizeof message).drop == nullptr);
  while (!reply) bench.loop.run_one();
  return *reply;
}

protocol::Order an_order(protocol::Verb verb, SessionId session = {}, std::uint64_t bytes = 0) {
  auto message = protocol::make<protocol::Order>(5);
  message.verb = verb;
  message.session = static_cast<std::uint64_t>(session);
  message.bytes = bytes;
  return message;
}

}  // namespace

TEST_CASE("Orders: a user may trim a session of his own, lower its limit, and nothing else") {
  using protocol::Verb;
  Bench bench(256_MiB);
  LineGuest anna(bench, "anna", 1000), bert(bench, "bert", 1001);
  anna.take(2);
  anna.give(1);
  CHECK(order(bench, 1000, an_order(Verb::trim)).header.status == Status::refused);
  CHECK(order(bench, 1000, an_order(Verb::reload)).header.status == Status::refused);
  CHECK(order(bench, 1000, an_order(Verb::reload, anna.id())).header.status == Status::refused);
  CHECK(order(bench, 1000, an_order(Verb::trim, bert.id())).header.status == Status::refused);
  CHECK(order(bench, 1000, an_order(Verb::limit, bert.id(), 0)).header.status == Status::refused);
  CHECK(order(bench, 1000, an_order(Verb::limit, SessionId{99}, 0)).header.status == Status::refused);
  CHECK(order(bench, 1000, an_order(Verb::trim, anna.id())).bytes == UINT64_MAX);  // the pool is others' too
  CHECK(bench.device->pool().totals().cached == 32_MiB);

  const auto limit = [&] { return bench.device->limit_of(anna.id()); };
  CHECK(order(bench, 1000, an_order(Verb::limit, anna.id(), (64_MiB).value)).header.status == Status::ok);
  CHECK(limit() == 64_MiB);
  CHECK(order(bench, 1000, an_order(Verb::limit, anna.id(), (128_MiB).value)).header.status == Status::ok);
  CHECK(limit() == 64_MiB);
  CHECK(order(bench, 1000, an_order(Verb::limit, anna.id(), UINT64_MAX)).header.status == Status::refused);
  CHECK(order(bench, 0, an_order(Verb::limit, anna.id(), (128_MiB).value)).header.status == Status::ok);
  CHECK(limit() == 128_MiB);
  CHECK(order(bench, 0, an_order(Verb::limit, anna.id(), UINT64_MAX)).header.status == Status::ok);
  CHECK(limit() == chunks::kUnlimited);

  CHECK(order(bench, 0, an_order(Verb::trim)).bytes == (32_MiB).value);
  CHECK(order(bench, 0, an_order(Verb::trim, SessionId{99})).header.status == Status::no_device);
  CHECK(order(bench, 0, an_order(static_cast<Verb>(77))).header.status == Status::unsupported);
  auto elsewhere = an_order(Verb::trim);
  elsewhere.device = 7;
  CHECK(order(bench, 0, elsewhere).header.status == Status::no_device);
  CHECK(order(bench, 0, an_order(Verb::reload)).header.status == Status::malformed);  // nobody reads files here
  // A session orders nothing.
  auto message = an_order(Verb::trim);
  anna.send(message);
  protocol::ErrorReply refused;
  REQUIRE(protocol::decode(anna.packets.back().bytes.data(), anna.packets.back().bytes.size(), refused));
  CHECK(refused.header.status == Status::refused);
}
