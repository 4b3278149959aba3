// giveback: how long it takes until what a session held is the driver's again.
#include <algorithm>
#include <stdexcept>

#include "tools/bench/bench.hpp"
#include "tools/bench/daemon.hpp"

namespace vramd::bench {
namespace {

constexpr std::uint64_t kChunk = 32u << 20;
constexpr std::size_t kCount = 320;

// Milliseconds from the first packet until the daemon, which answers in order, has all of it at the driver.
double give_back_all(SessionClient& client, std::vector<std::uint64_t>& chunks) {
  const double begin = now();
  for (std::size_t i = 0; i < chunks.size(); i += protocol::kMaxChunksPerMessage) {
    const std::size_t count = std::min<std::size_t>(protocol::kMaxChunksPerMessage, chunks.size() - i);
    client.give_back(chunks.data() + i, static_cast<std::uint32_t>(count));
  }
  if (client.memory_info().used_bytes != 0) throw std::runtime_error("something is still leased");
  chunks.clear();
  return (now() - begin) / 1e6;
}

Row timed(const char* name, const Daemon& daemon, int rounds, bool with_takes) {
  SessionClient client(daemon);
  Row row;
  row.name = name;
  row.unit = "ms";
  row.at_most = 50;
  std::vector<std::uint64_t> chunks;
  for (int round = 0; round < rounds; ++round) {
    const double begin = now();
    while (chunks.size() < kCount) chunks.push_back(client.take(kChunk));
    const double returned = give_back_all(client, chunks);
    row.samples.add(with_takes ? (now() - begin) / 1e6 : returned);
  }
  return row;
}

}  // namespace

Result run_giveback(const Options& options) {
  constexpr const char* kPolicy = R"({"version": 1, "pool": {"retain": "0B", "headroom": "0B"}})";
  Result result{"giveback", "simulated GPU", kProfile, {}};
  {
    const Daemon daemon(options.folder, kPolicy, {});
    result.rows.push_back(
        timed("10 GiB in chunks of 32 MiB, until the driver has them", daemon, options.long_run ? 50 : 9, false));
  }
  // The control: taking them counts too, from a driver that creates as slowly as an A100's.
  const Daemon daemon(options.folder, kPolicy, {{"SIM_TIME", "1"}});
  result.rows.push_back(timed("the same and taking them before", daemon, 3, true));
  result.rows.back().is_control = true;
  return result;
}

}  // namespace vramd::bench
