// The pool's life cycle of a chunk, one behaviour each.
#include "allocator/chunks/pool.hpp"
#include "tests/support/catch.hpp"

using namespace vramd;
using namespace vramd::chunks;

namespace {

constexpr SessionId kAnna{1}, kBert{2}, kCarl{3};
constexpr DomainId kHome{1}, kAway{2};

// Answers a NeedCreate or NeedConvert as a driver with enough memory would.
Granted grant(Pool& pool, SessionId session, Bytes bytes) {
  Decision decision = pool.request(session, bytes);
  if (auto* convert = std::get_if<NeedConvert>(&decision)) {
    for (const Release& release : convert->releases) pool.released(release.chunk);
    decision = pool.created(convert->chunk);
  } else if (auto* create = std::get_if<NeedCreate>(&decision)) {
    decision = pool.created(create->chunk);
  }
  REQUIRE(std::holds_alternative<Granted>(decision));
  const Granted granted = std::get<Granted>(decision);
  REQUIRE(pool.check() == nullptr);
  return granted;
}

// As a session does that has used the chunk.
std::optional<Releases> give_back(Pool& pool, SessionId session, ChunkId chunk) {
  REQUIRE(pool.acknowledge(session, chunk));
  return pool.give_back(session, chunk);
}

Pool make_pool(Bytes retain = 1_GiB) {
  Pool pool(Pool::Config{retain, 0_B});
  pool.open(kAnna, kHome, {});
  pool.open(kBert, kHome, {});
  pool.open(kCarl, kAway, {});
  return pool;
}

}  // namespace

TEST_CASE("Pool: the first chunk is created and fresh, a clean one is handed on inside its domain") {
  Pool pool = make_pool();
  const Granted first = grant(pool, kAnna, 32_MiB);
  CHECK(first.fresh);
  CHECK(pool.totals().leased == 32_MiB);
  REQUIRE(give_back(pool, kAnna, first.chunk));
  CHECK(pool.totals().leased == 0_B);
  CHECK(pool.totals().cached == 32_MiB);

  const Granted again = grant(pool, kBert, 32_MiB);
  CHECK(again.chunk == first.chunk);
  CHECK_FALSE(again.fresh);
  CHECK(pool.counts().hit == 1);
  CHECK(pool.counts().recycled == 1);
}

TEST_CASE("Pool: a used chunk never crosses domains") {
  Pool pool = make_pool();
  const Granted first = grant(pool, kAnna, 32_MiB);
  REQUIRE(give_back(pool, kAnna, first.chunk));
  const Granted other = grant(pool, kCarl, 32_MiB);
  CHECK(other.chunk != first.chunk);
  CHECK(other.fresh);
}

TEST_CASE("Pool: another domain's idle chunk is released and created anew when the device is full") {
  Pool pool = make_pool();
  const Granted first = grant(pool, kAnna, 32_MiB);
  REQUIRE(give_back(pool, kAnna, first.chunk));
  pool.observe_free(0_B);
  const Decision decision = pool.request(kCarl, 32_MiB);
  const auto* convert = std::get_if<NeedConvert>(&decision);
  REQUIRE(convert != nullptr);
  REQUIRE(convert->releases.size() == 1);
  CHECK(convert->releases[0].chunk == first.chunk);
  CHECK_FALSE(convert->releases[0].dirty);
  CHECK(pool.check() == nullptr);
}

TEST_CASE("Pool: the wrong class is converted when the driver refuses, and memory is short only after that") {
  Pool pool = make_pool();
  const Granted small = grant(pool, kAnna, 2_MiB), large = grant(pool, kAnna, 32_MiB);
  REQUIRE(give_back(pool, kAnna, small.chunk));
  REQUIRE(give_back(pool, kAnna, large.chunk));

  const Decision asked = pool.request(kCarl, 32_MiB);
  const auto* create = std::get_if<NeedCreate>(&asked);
  REQUIRE(create != nullptr);
  const Decision second = pool.create_failed(create->chunk, CreateFailure::out_of_memory);
  const auto* convert = std::get_if<NeedConvert>(&second);
  REQUIRE(convert != nullptr);
  REQUIRE(convert->releases.size() == 1);
  CHECK(convert->releases[0].chunk == large.chunk);  // the largest goes first, and it is enough
  pool.released(large.chunk);

  const Decision third = pool.create_failed(convert->chunk, CreateFailure::out_of_memory);
  REQUIRE(std::holds_alternative<NeedConvert>(third));
  pool.released(std::get<NeedConvert>(third).releases.at(0).chunk);
  const Decision last = pool.create_failed(convert->chunk, CreateFailure::out_of_memory);
  REQUIRE(std::holds_alternative<Refused>(last));
  CHECK(std::get<Refused>(last).reason == Refusal::out_of_memory);
  CHECK(pool.counts().oom == 0);  // the owner counts, when it answers
  CHECK(pool.ledger().find(kCarl)->used() == 0_B);
  CHECK(pool.check() == nullptr);
}

TEST_CASE("Pool: chunks of a dead session are never granted again") {
  Pool pool = make_pool();
  const Granted held = grant(pool, kAnna, 32_MiB), unacknowledged = grant(pool, kAnna, 32_MiB);
  REQUIRE(pool.acknowledge(kAnna, held.chunk));
  const Releases releases = pool.end(kAnna);
  REQUIRE(releases.size() == 2);
  CHECK(releases[0].dirty);
  CHECK(pool.totals().dying == 64_MiB);
  CHECK(pool.totals().leased == 0_B);
  const Granted next = grant(pool, kBert, 32_MiB);
  CHECK(next.chunk != held.chunk);
  CHECK(next.chunk != unacknowledged.chunk);
  for (const Release& release : releases) pool.released(release.chunk);
  CHECK(pool.totals().dying == 0_B);
}

TEST_CASE("Pool: a chunk that was never acknowledged is not lent again") {
  Pool pool = make_pool();
  const Granted held = grant(pool, kAnna, 32_MiB);
  const auto releases = pool.give_back(kAnna, held.chunk);
  REQUIRE(releases->size() == 1);
  CHECK(releases->at(0).chunk == held.chunk);
  CHECK(grant(pool, kAnna, 32_MiB).chunk != held.chunk);
  CHECK(pool.check() == nullptr);
}

TEST_CASE("Pool: what is created for a session that is gone stays fresh for anybody") {
  Pool pool = make_pool();
  const Decision asked = pool.request(kAnna, 32_MiB);
  const ChunkId chunk = std::get<NeedCreate>(asked).chunk;
  CHECK(pool.end(kAnna).empty());
  CHECK(std::holds_alternative<Kept>(pool.created(chunk)));
  const Granted other = grant(pool, kCarl, 32_MiB);
  CHECK(other.chunk == chunk);
  CHECK(other.fresh);
  CHECK(pool.counts().recycled == 0);
}

TEST_CASE("Pool: idle chunks above `retain` are released at once, largest class first, oldest first") {
  Pool pool = make_pool(36_MiB);
  const Granted small = grant(pool, kAnna, 2_MiB);
  const Granted older = grant(pool, kAnna, 32_MiB), newer = grant(pool, kAnna, 32_MiB);
  CHECK(give_back(pool, kAnna, small.chunk)->empty());
  CHECK(give_back(pool, kAnna, older.chunk)->empty());
  const auto releases = give_back(pool, kAnna, newer.chunk);
  REQUIRE(releases->size() == 1);
  CHECK(releases->at(0).chunk == older.chunk);
  CHECK(pool.totals().cached == 34_MiB);
  CHECK(pool.configure(0_B, 0_B).size() == 2);
  CHECK(pool.totals().cached == 0_B);
  CHECK(pool.check() == nullptr);
}

TEST_CASE("Pool: foreign, unknown and twice returned chunks are refused") {
  Pool pool = make_pool();
  const Granted held = grant(pool, kAnna, 2_MiB);
  CHECK_FALSE(pool.give_back(kBert, held.chunk));
  CHECK_FALSE(pool.acknowledge(kBert, held.chunk));
  CHECK_FALSE(pool.give_back(kAnna, ChunkId{999}));
  CHECK(pool.acknowledge(kAnna, held.chunk));
  CHECK_FALSE(pool.acknowledge(kAnna, held.chunk));
  CHECK(pool.give_back(kAnna, held.chunk));
  CHECK_FALSE(pool.give_back(kAnna, held.chunk));
  CHECK(pool.check() == nullptr);
}

TEST_CASE("Pool: sizes that are no class in use are refused") {
  Pool pool = make_pool();
  for (const Bytes bytes : {0_B, 1_B, 20_MiB, 128_MiB, Bytes{UINT64_MAX}}) {
    const Decision decision = pool.request(kAnna, bytes);
    REQUIRE(std::holds_alternative<Refused>(decision));
    CHECK(std::get<Refused>(decision).reason == Refusal::not_a_class);
  }
}

TEST_CASE("Pool: grants in flight and unacknowledged are bounded together") {
  Pool pool(Pool::Config{1_GiB, 0_B, 3});
  pool.open(kAnna, kHome, {});
  const Granted first = grant(pool, kAnna, 2_MiB);
  grant(pool, kAnna, 2_MiB);
  REQUIRE(std::holds_alternative<NeedCreate>(pool.request(kAnna, 2_MiB)));
  const Decision fourth = pool.request(kAnna, 2_MiB);
  REQUIRE(std::holds_alternative<Refused>(fourth));
  CHECK(std::get<Refused>(fourth).reason == Refusal::too_many_unacknowledged);
  REQUIRE(pool.acknowledge(kAnna, first.chunk));
  CHECK(std::holds_alternative<NeedCreate>(pool.request(kAnna, 2_MiB)));
}
