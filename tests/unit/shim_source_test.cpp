// Where a process's chunks come from while daemons come and go: the account that the daemon of the moment keeps is what the
// process holds, to the byte.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "allocator/base/clock.hpp"
#include "allocator/base/unique_fd.hpp"
#include "allocator/protocol/socket.hpp"
#include "shim/client/chunk_source.hpp"
#include "tests/support/catch.hpp"

using namespace vramd;
using namespace vramd::protocol;
using vramd::shim::ChunkSourceOfProcess;

namespace {

// A driver whose handles are counted.
std::atomic<std::int64_t> g_handles{0};

Driver counting_driver() {
  Driver driver{};
  static std::atomic<CUmemGenericAllocationHandle> next{1};
  driver.driver_get_version = [](int* version) {
    *version = 13000;
    return CUDA_SUCCESS;
  };
  driver.device_get_uuid = [](CUuuid* uuid, CUdevice) {
    std::memset(uuid, 7, sizeof *uuid);
    return CUDA_SUCCESS;
  };
  driver.device_total_mem = [](std::size_t* bytes, CUdevice) {
    *bytes = std::size_t{24} << 30;
    return CUDA_SUCCESS;
  };
  driver.mem_get_info = [](std::size_t* free, std::size_t* total) {
    *free = *total = std::size_t{24} << 30;
    return CUDA_SUCCESS;
  };
  driver.mem_create = [](CUmemGenericAllocationHandle* handle, std::size_t, const CUmemAllocationProp*, unsigned long long) {
    *handle = next++;
    ++g_handles;
    return CUDA_SUCCESS;
  };
  driver.mem_import_from_shareable_handle = [](CUmemGenericAllocationHandle* handle, void*, CUmemAllocationHandleType) {
    *handle = next++;
    ++g_handles;
    return CUDA_SUCCESS;
  };
  driver.mem_release = [](CUmemGenericAllocationHandle) {
    --g_handles;
    return CUDA_SUCCESS;
  };
  return driver;
}

// A daemon that lends what it is asked for and keeps an account for each connection; after `patience` requests it hangs up.
class FlappingDaemon {
 public:
  explicit FlappingDaemon(int patience) : patience_(patience) {
    char folder[] = "/tmp/vramd-source-XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    folder_ = folder;
    path = folder_ + "/s";
    listener_ = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    std::strcpy(where.sun_path, path.c_str());
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) == 0);
    REQUIRE(::listen(listener_.get(), 4) == 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~FlappingDaemon() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    {
      const std::lock_guard lock(mutex_);
      if (client_ >= 0) ::shutdown(client_, SHUT_RDWR);
    }
    thread_.join();
    std::filesystem::remove_all(folder_);
  }

  struct Account {
    std::int64_t leased, charged;
    bool connected;
  };
  Account account() {
    const std::lock_guard lock(mutex_);
    std::int64_t leased = 0;
    for (const auto& [id, bytes] : leases_) leased += bytes;
    return {leased, charged_, client_ >= 0};
  }
  void be_patient() { patience_ = 1 << 30; }

  std::string path;
  std::atomic<int> connections{0}, nonsense{0};

 private:
  void serve() {
    for (;;) {
      const UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
      if (client.get() < 0) return;
      {
        const std::lock_guard lock(mutex_);
        client_ = client.get();
        leases_.clear();
        charged_ = 0;
        next_ = (static_cast<std::uint64_t>(++connections) << 32) + 1;
      }
      unsigned char buffer[kMaxMessage];
      for (int requests = 0; requests < patience_; ++requests) {
        const ssize_t got = ::recv(client.get(), buffer, sizeof buffer, 0);
        Header header;
        if (got <= 0 || !decode_header(buffer, static_cast<std::size_t>(got), header)) break;
        answer(client.get(), header, buffer, static_cast<std::size_t>(got));
      }
      const std::lock_guard lock(mutex_);
      client_ = -1;
    }
  }

  void answer(int socket, const Header& header, const void* data, std::size_t size) {
    const std::lock_guard lock(mutex_);
    if (header.type == Type::hello) {
      auto reply = make<HelloReply>(header.request);
      reply.device_count = 1;
      reply.mode = Mode::pool;
      reply.devices[0] = {0, Source::daemon, std::uint64_t{24} << 30};
      reply.limit_bytes[0] = UINT64_MAX;
      (void)send_message(socket, reply);
    } else if (header.type == Type::grant) {
      Grant grant;
      if (!decode(data, size, grant)) return;
      auto reply = make<GrantReply>(header.request);
      reply.chunk = next_++;
      reply.bytes = grant.bytes;
      leases_[reply.chunk] = static_cast<std::int64_t>(grant.bytes);
      const int fds[] = {chunk_.get()};
      (void)send_message(socket, reply, fds, 1);
    } else if (header.type == Type::give_back) {
      GiveBack back;
      if (!decode(data, size, back)) return;
      for (std::uint32_t i = 0; i < back.count; ++i) nonsense += leases_.erase(back.chunks[i]) == 0;
    } else if (header.type == Type::charge) {
      Charge charge;
      if (!decode(data, size, charge)) return;
      charged_ += charge.bytes;
      nonsense += charged_ < 0;
      (void)send_message(socket, make<ChargeReply>(header.request));
    }
  }

  std::string folder_;
  UniqueFd listener_;
  const UniqueFd chunk_{::memfd_create("chunk", MFD_CLOEXEC)};  // what every grant carries
  std::atomic<int> patience_;
  std::mutex mutex_;
  int client_ = -1;
  std::map<std::uint64_t, std::int64_t> leases_;
  std::int64_t charged_ = 0;
  std::uint64_t next_ = 1;
  std::thread thread_;
};

// Takes and gives at random, and remembers what it holds.
class Worker {
 public:
  Worker(ChunkSourceOfProcess& source, unsigned seed) : source_(source), random_(seed) {}

  void work(int steps) {
    for (int i = 0; i < steps; ++i) {
      const unsigned choice = random_() % 8;
      if (choice < 3 || (choice < 4 && chunks_.empty())) {
        auto chunk = source_.acquire(0, random_() % 2 != 0 ? kLargeChunk : kSmallChunk);
        failures += !chunk;
        if (chunk) chunks_.push_back(*chunk);
      } else if (choice < 6) {
        const std::size_t count = std::min<std::size_t>(chunks_.size(), 1 + random_() % 5);
        source_.give_back(0, chunks_.data() + chunks_.size() - count, count);
        chunks_.resize(chunks_.size() - count);
      } else if (choice == 6) {
        const Bytes size{4096 * (1 + random_() % 9)};
        source_.note_native(0, size);
        native_.push_back(size);
      } else if (!native_.empty()) {
        source_.leave_native(0, native_.back());
        native_.pop_back();
      }
    }
  }
  void give_all() {
    source_.give_back(0, chunks_.data(), chunks_.size());
    chunks_.clear();
    for (const Bytes size : native_) source_.leave_native(0, size);
    native_.clear();
  }
  std::int64_t held() const {
    Bytes sum;
    for (const Chunk& chunk : chunks_) sum += chunk.size;
    for (const Bytes size : native_) sum += size;
    return static_cast<std::int64_t>(sum.value);
  }
  int failures = 0;

 private:
  ChunkSourceOfProcess& source_;
  std::mt19937 random_;
  std::vector<Chunk> chunks_;
  std::vector<Bytes> native_;
};

shim::Settings settings_for(const std::string& path) {
  shim::Settings settings;
  settings.log = shim::LogLevel::off;
  std::strcpy(settings.socket, path.c_str());
  return settings;
}

constexpr ChunkSourceOfProcess::Pauses kShort{Nanos{100'000}, milliseconds(2)};

// Waits until the daemon's account says `held`, while a question now and then lets the source connect.
bool agrees(ChunkSourceOfProcess& source, FlappingDaemon& daemon, std::int64_t held, int millis = 5000) {
  for (int i = 0; i < millis; ++i) {
    const auto account = daemon.account();
    if (account.connected && account.leased + account.charged == held) return true;
    source.note_native(0, {0});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

TEST_CASE("source: whoever lends, and however often the daemon is lost, its account is what the process holds") {
  shim::set_log_level(shim::LogLevel::off);
  const Driver driver = counting_driver();
  FlappingDaemon daemon(40);
  const shim::Settings settings = settings_for(daemon.path);
  ChunkSourceOfProcess source(driver, settings, kShort);
  CHECK(source.introduce(1) == Mode::pool);
  constexpr unsigned kThreads = 4, kRounds = 12;
  std::vector<Worker> workers;
  for (unsigned i = 0; i < kThreads; ++i) workers.emplace_back(source, i + 1);
  for (unsigned round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (Worker& worker : workers) threads.emplace_back([&] { worker.work(150); });
    for (std::thread& thread : threads) thread.join();
    std::int64_t held = 0;
    for (const Worker& worker : workers) held += worker.held();
    CHECK(agrees(source, daemon, held));
  }
  CHECK(daemon.connections > 10);  // else nothing was tried
  const auto counters = source.counters();
  CHECK(counters.granted > 0);
  CHECK(counters.created > 0);
  daemon.be_patient();
  for (Worker& worker : workers) {
    worker.give_all();
    CHECK(worker.failures == 0);
  }
  CHECK(agrees(source, daemon, 0));
  CHECK(g_handles == 0);
  CHECK(daemon.nonsense == 0);
}

TEST_CASE("source: a daemon that is not there is looked for with growing pauses, and not at all after goodbye") {
  shim::set_log_level(shim::LogLevel::off);
  const Driver driver = counting_driver();
  FlappingDaemon daemon(0);  // accepts and hangs up
  const shim::Settings settings = settings_for(daemon.path);
  ChunkSourceOfProcess source(driver, settings, {milliseconds(20), milliseconds(80)});
  (void)source.introduce(1);
  const auto look_for = [&](int millis) {
    const int before = daemon.connections;
    const Nanos end = MonotonicClock{}.now() + milliseconds(millis);
    while (MonotonicClock{}.now() < end) {
      source.note_native(0, {0});
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return daemon.connections - before;
  };
  const int tries = look_for(1000);
  CHECK(tries >= 3);
  CHECK(tries <= 14);  // 40, 80, 80, ... ms
  source.goodbye();
  CHECK(look_for(200) == 0);
}
