// Limits and charges of the ledger.
#include "allocator/chunks/pool.hpp"
#include "tests/support/catch.hpp"

using namespace vramd;
using namespace vramd::chunks;

namespace {

constexpr SessionId kAnna{1}, kBert{2};
constexpr DomainId kHome{1};

bool refused_by_limit(const Decision& decision) {
  const auto* refused = std::get_if<Refused>(&decision);
  return refused != nullptr && refused->reason == Refusal::over_limit;
}

ChunkId create(Pool& pool, SessionId session, Bytes bytes) {
  const Decision decision = pool.request(session, bytes);
  REQUIRE(std::holds_alternative<NeedCreate>(decision));
  pool.created(std::get<NeedCreate>(decision).chunk);
  return std::get<NeedCreate>(decision).chunk;
}

}  // namespace

TEST_CASE("Limits: leases, requests in flight and charges count together") {
  Pool pool(Pool::Config{1_GiB, 0_B});
  pool.open(kAnna, kHome, {.session = 8_MiB});
  create(pool, kAnna, 2_MiB);
  CHECK(pool.charge(kAnna, 3 << 20).accepted);
  REQUIRE(std::holds_alternative<NeedCreate>(pool.request(kAnna, 2_MiB)));
  CHECK(refused_by_limit(pool.request(kAnna, 2_MiB)));
  CHECK_FALSE(pool.charge(kAnna, (1 << 20) + 1).accepted);
  CHECK(pool.charge(kAnna, 1 << 20).accepted);
  CHECK(pool.ledger().find(kAnna)->used() == 8_MiB);
  CHECK(pool.check() == nullptr);
}

TEST_CASE("Limits: a charge never underflows and a refusal changes nothing") {
  Pool pool(Pool::Config{1_GiB, 0_B});
  pool.open(kAnna, kHome, {});
  CHECK(pool.charge(kAnna, 100).accepted);
  CHECK_FALSE(pool.charge(kAnna, -101).accepted);
  CHECK_FALSE(pool.charge(kAnna, INT64_MIN).accepted);
  CHECK_FALSE(pool.charge(kAnna, INT64_MAX).accepted);
  CHECK(pool.ledger().find(kAnna)->charged == 100_B);
  CHECK(pool.charge(kAnna, -100).accepted);
  CHECK(pool.ledger().find(kAnna)->charged == 0_B);
}

TEST_CASE("Limits: lowered below what is held, nothing is taken and nothing more is granted") {
  Pool pool(Pool::Config{1_GiB, 0_B});
  pool.open(kAnna, kHome, {});
  const ChunkId chunk = create(pool, kAnna, 32_MiB);
  pool.set_limits(kAnna, {.session = 2_MiB});
  CHECK(pool.holds(kAnna, chunk));
  CHECK(refused_by_limit(pool.request(kAnna, 2_MiB)));
  REQUIRE(pool.acknowledge(kAnna, chunk));
  REQUIRE(pool.give_back(kAnna, chunk));
  CHECK_FALSE(refused_by_limit(pool.request(kAnna, 2_MiB)));
}

TEST_CASE("Limits: sessions of a group share its limit") {
  Pool pool(Pool::Config{1_GiB, 0_B});
  const Limits shared{.group = GroupId{1}, .group_limit = 6_MiB};
  pool.open(kAnna, kHome, shared);
  pool.open(kBert, kHome, shared);
  create(pool, kAnna, 2_MiB);
  create(pool, kBert, 2_MiB);
  CHECK(pool.charge(kBert, 2 << 20).accepted);
  CHECK(refused_by_limit(pool.request(kAnna, 2_MiB)));
  pool.end(kBert);
  CHECK_FALSE(refused_by_limit(pool.request(kAnna, 2_MiB)));
}

TEST_CASE("Limits: what is a fact is entered above the limit, and may leave again") {
  Pool pool(Pool::Config{1_GiB, 0_B});
  pool.open(kAnna, kHome, {.session = 2_MiB});
  CHECK_FALSE(pool.charge(kAnna, 3 << 20).accepted);
  CHECK(pool.charge(kAnna, 3 << 20, true).accepted);
  CHECK(pool.ledger().find(kAnna)->charged == 3_MiB);
  CHECK(pool.counts().over_limit == 1);
  CHECK(pool.charge(kAnna, -(3 << 20)).accepted);
  CHECK(pool.ledger().find(kAnna)->charged == 0_B);
}

TEST_CASE("Limits: a charge makes room for the driver by giving up idle chunks") {
  Pool pool(Pool::Config{1_GiB, 0_B});
  pool.open(kAnna, kHome, {});
  const ChunkId chunk = create(pool, kAnna, 32_MiB);
  REQUIRE(pool.acknowledge(kAnna, chunk));
  REQUIRE(pool.give_back(kAnna, chunk));
  pool.observe_free(4_MiB);
  CHECK(pool.charge(kAnna, 2 << 20).releases.empty());
  const Charged more = pool.charge(kAnna, 4 << 20);
  CHECK(more.accepted);
  REQUIRE(more.releases.size() == 1);
  CHECK(more.releases[0].chunk == chunk);
}
