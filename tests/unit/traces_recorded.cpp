// The recorded traces, read in full: counts and live peaks are those that their README states.
#include <cstdlib>
#include <string>

#include "tests/support/catch.hpp"
#include "tools/traces/reader.hpp"
#include "tools/traces/statistics.hpp"

using namespace vramd::traces;

namespace {

struct Recorded {
  const char* name;
  std::uint64_t present, allocations, frees, live_peak_bytes;
};

constexpr Recorded kRecorded[] = {
    {"Wedsonlin.medium_128_training", 664, 6526, 6305, 7013335044},
    {"Wedsonlin.medium_256_training", 664, 6624, 6403, 9103544320},
    {"Wedsonlin.medium_512_training", 664, 7591, 7370, 12426629128},
    {"Wedsonlin.medium_1024_training", 664, 7591, 7370, 24207167496},
    {"Wedsonlin.medium_128_inference", 223, 1280, 1280, 1736962048},
    {"Wedsonlin.medium_256_inference", 223, 1280, 1280, 1793775616},
    {"Wedsonlin.medium_512_inference", 223, 1666, 1666, 1949343744},
    {"Wedsonlin.medium_1024_inference", 223, 1280, 1280, 2877435904},
    {"MAGMA27.memory_snapshot", 229, 1721, 1721, 13923997700},
    {"bcrafton.memory_snapshot", 447, 2162, 2162, 3849232640},
    {"notHanmin.memory_snapshot_forward", 1745, 4138, 2405, 43754773506},
    {"notHanmin.memory_snapshot_forward_without_mixed", 1745, 3368, 2116, 44087612420},
    {"silmont2000.mem_snapshot", 0, 36, 26, 3249143816},
    {"silmont2000.memory_forward_bf16_128", 137, 937, 937, 779837440},
    {"silmont2000.memory_forward_fp32_128", 137, 681, 681, 556843008},
    {"composite.wedsonlin_seq_128_256_512_1024_512_256", 0, 46531, 46531, 24207167496},
};

}  // namespace

TEST_CASE("Reader: recorded traces have the counts and live peaks of their README") {
  const char* folder = std::getenv("VRAMD_TRACES");
  if (!folder || *folder == '\0') {
    WARN("VRAMD_TRACES is not set: nothing was read");
    return;
  }
  for (const Recorded& recorded : kRecorded) {
    INFO(recorded.name);
    Reader reader(std::string(folder) + "/" + recorded.name + ".csv.gz");
    Statistics statistics;
    for (Event event; reader.next(event);) statistics.add(event);
    CHECK(reader.error() == "");
    CHECK(statistics.count(Op::present) == recorded.present);
    CHECK(statistics.count(Op::allocate) == recorded.allocations);
    CHECK(statistics.count(Op::release) == recorded.frees);
    CHECK(statistics.live().peak_bytes() == recorded.live_peak_bytes);
  }
}
