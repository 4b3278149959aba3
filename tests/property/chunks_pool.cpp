// Random sessions, requests, failures and deaths against a model of the device: the pool keeps its promises.
#include <deque>
#include <initializer_list>
#include <map>
#include <random>
#include <set>
#include <utility>

#include <rapidcheck.h>

#include "allocator/chunks/pool.hpp"
#include "tests/support/catch.hpp"

using namespace vramd;
using namespace vramd::chunks;

namespace {

// The device and its actor: executes commands in order, like the daemon's, when the test lets it.
struct World {
  Bytes capacity, headroom;
  Bytes elsewhere;  // used by processes without the shim
  Pool pool;
  std::uint64_t next_session = 1;

  struct Command {
    bool create;
    ChunkId chunk;
    Bytes bytes;
    SessionId session{};  // creates: for whom
    bool foreign = false;
  };
  std::deque<Command> queue;
  std::map<ChunkId, Bytes> backed;  // chunks that the driver holds
  std::map<ChunkId, DomainId> touched_by;
  std::set<ChunkId> dead;
  // Whose bytes may stand in a chunk, and in what the driver has free.
  std::map<ChunkId, std::set<DomainId>> bytes_of;
  std::set<DomainId> bytes_in_driver;
  struct Holder {
    DomainId domain;
    std::set<ChunkId> chunks, unacknowledged;
  };
  std::map<SessionId, Holder> sessions;

  World(Bytes size, Bytes retain, Bytes head) : capacity(size), headroom(head), pool(Pool::Config{retain, head, 6}) {}

  Bytes driver_free() const {
    Bytes used = elsewhere;
    for (const auto& [chunk, bytes] : backed) used += bytes;
    return saturating_sub(capacity, used);
  }
  void enqueue(const Releases& releases) {
    for (const Release& release : releases) {
      RC_ASSERT(backed.count(release.chunk) == 1u);
      queue.push_back({false, release.chunk, release.bytes});
    }
  }
  void granted(const Granted& grant) {
    Holder& holder = sessions.at(grant.session);
    RC_ASSERT(backed.count(grant.chunk) == 1u);
    RC_ASSERT(dead.count(grant.chunk) == 0u);
    for (const auto& [id, other] : sessions) RC_ASSERT(other.chunks.count(grant.chunk) == 0u);
    const auto touched = touched_by.find(grant.chunk);
    RC_ASSERT(grant.fresh == (touched == touched_by.end()));
    if (!grant.fresh) RC_ASSERT(touched->second == holder.domain);
    touched_by[grant.chunk] = holder.domain;
    std::set<DomainId>& content = bytes_of[grant.chunk];
    for (const DomainId domain : content) RC_ASSERT(domain == holder.domain);
    content.insert(holder.domain);
    holder.chunks.insert(grant.chunk);
    holder.unacknowledged.insert(grant.chunk);
  }
  void apply(const Decision& decision, SessionId session) {
    if (const auto* grant = std::get_if<Granted>(&decision)) {
      RC_ASSERT(grant->session == session);
      granted(*grant);
    } else if (const auto* create = std::get_if<NeedCreate>(&decision)) {
      queue.push_back({true, create->chunk, create->bytes, session, create->foreign});
    } else if (const auto* convert = std::get_if<NeedConvert>(&decision)) {
      RC_ASSERT(!convert->releases.empty());
      enqueue(convert->releases);
      queue.push_back({true, convert->chunk, convert->bytes, session, convert->foreign});
    } else if (const auto* kept = std::get_if<Kept>(&decision)) {
      enqueue(kept->releases);
    }
  }
  // Executes the oldest command. `fail` makes the driver refuse a create for another reason than memory.
  void step(bool fail) {
    if (queue.empty()) return;
    const Command command = queue.front();
    queue.pop_front();
    if (!command.create) {
      RC_ASSERT(backed.erase(command.chunk) == 1u);
      bytes_in_driver.insert(bytes_of[command.chunk].begin(), bytes_of[command.chunk].end());
      pool.released(command.chunk);
    } else if (fail) {
      apply(pool.create_failed(command.chunk, CreateFailure::other), command.session);
    } else if (driver_free() < command.bytes + headroom) {
      const Decision decision = pool.create_failed(command.chunk, CreateFailure::out_of_memory);
      // "What the device could hold is never refused": nothing idle is left and the commands on their way are
      // creates.
      if (std::holds_alternative<Refused>(decision)) {
        if (sessions.count(command.session) != 0) RC_ASSERT(pool.totals().cached == 0_B);
      }
      apply(decision, command.session);
    } else {
      backed.emplace(command.chunk, command.bytes);
      if (!command.foreign) bytes_of[command.chunk] = bytes_in_driver;  // else it is cleared
      apply(pool.created(command.chunk), command.session);
    }
    pool.observe_free(driver_free());
  }
  Bytes held(const Holder& holder) const {
    Bytes sum;
    for (const ChunkId chunk : holder.chunks) sum += backed.at(chunk);
    return sum;
  }
  void check() const {
    const char* fault = pool.check();
    if (fault != nullptr) RC_FAIL(fault);
    Bytes leased;
    for (const auto& [id, holder] : sessions) {
      const Account* account = pool.ledger().find(id);
      RC_ASSERT(account != nullptr);
      RC_ASSERT(account->leased.value == held(holder).value);
      leased += held(holder);
    }
    RC_ASSERT(pool.totals().leased.value == leased.value);
  }
};

// Where chance comes from: rapidcheck, which makes a failing case short, or a generator, which is fast.
struct ShrinkingDice {
  template <class T>
  T below(T low, T high) {
    return *rc::gen::inRange<T>(low, high);
  }
};
struct FastDice {
  std::mt19937_64 random;
  template <class T>
  T below(T low, T high) {
    return low + static_cast<T>(random() % static_cast<std::uint64_t>(high - low));
  }
};

template <class Dice, class Container>
auto pick(Dice& dice, const Container& from) {
  auto at = from.begin();
  std::advance(at, dice.template below<std::size_t>(0, from.size()));
  return *at;
}

template <class Dice>
bool flip(Dice& dice) {
  return dice.template below<int>(0, 2) == 1;
}

// An action by its weight.
template <class Dice>
int choose(Dice& dice, std::initializer_list<std::pair<int, int>> weighted) {
  int sum = 0;
  for (const auto& [weight, value] : weighted) sum += weight;
  int left = dice.template below<int>(0, sum);
  for (const auto& [weight, value] : weighted)
    if ((left -= weight) < 0) return value;
  return 0;
}

template <class Dice>
void random_step(World& world, Dice& dice) {
  const int action = choose(dice, {{2, 0}, {8, 1}, {10, 2}, {5, 3}, {6, 4}, {1, 5}, {2, 8}, {1, 9}, {1, 10}, {1, 11}});
  if (action == 0 && world.sessions.size() < 6) {
    const SessionId id{world.next_session++};
    const DomainId domain{dice.template below<std::uint32_t>(1, 3)};
    Limits limits;
    if (flip(dice)) limits.session = Bytes{dice.template below<std::uint64_t>(0, 128)} * (1 << 20);
    if (flip(dice)) limits.group = GroupId{1}, limits.group_limit = 96_MiB;
    RC_ASSERT(world.pool.open(id, domain, limits));
    world.sessions[id] = {domain, {}, {}};
    return;
  }
  if (action == 2) return world.step(dice.template below<int>(0, 10) == 0);
  if (action == 8) {
    world.elsewhere = Bytes{dice.template below<std::uint64_t>(0, world.capacity.value)};
    return;
  }
  if (action == 9) {
    const Bytes retain = Bytes{dice.template below<std::uint64_t>(0, 160)} * (1 << 20);
    return world.enqueue(world.pool.configure(retain, world.headroom));
  }
  if (world.sessions.empty()) return;
  const SessionId id = pick(dice, world.sessions).first;
  World::Holder& holder = world.sessions.at(id);
  switch (action) {
    case 1: {
      const Bytes bytes = flip(dice) ? 2_MiB : 32_MiB;
      const Account before = *world.pool.ledger().find(id);
      const Decision decision = world.pool.request(id, bytes);
      const auto* refused = std::get_if<Refused>(&decision);
      if (refused == nullptr) {
        RC_ASSERT(before.used() + bytes <= before.limits.session);
      } else if (refused->reason == Refusal::over_limit && before.limits.group == GroupId{}) {
        RC_ASSERT(before.used() + bytes > before.limits.session);
      }
      return world.apply(decision, id);
    }
    case 3:
      if (holder.unacknowledged.empty()) return;
      {
        const ChunkId chunk = pick(dice, holder.unacknowledged);
        RC_ASSERT(world.pool.acknowledge(id, chunk));
        holder.unacknowledged.erase(chunk);
      }
      return;
    case 4:
      if (holder.chunks.empty()) return;
      {
        const ChunkId chunk = pick(dice, holder.chunks);
        const auto releases = world.pool.give_back(id, chunk);
        RC_ASSERT(releases.has_value());
        if (holder.unacknowledged.count(chunk) != 0) world.dead.insert(chunk);  // never lent again
        holder.chunks.erase(chunk);
        holder.unacknowledged.erase(chunk);
        world.enqueue(*releases);
      }
      return;
    case 5: {
      for (const ChunkId chunk : holder.chunks) world.dead.insert(chunk);
      const Releases releases = world.pool.end(id);
      RC_ASSERT(releases.size() == holder.chunks.size());
      world.sessions.erase(id);
      return world.enqueue(releases);
    }
    case 10: {
      const std::int64_t bytes = dice.template below<std::int64_t>(-(8 << 20), 8 << 20);
      const Bytes before = world.pool.ledger().find(id)->charged;
      const bool is_fact = flip(dice);
      const Charged charged = world.pool.charge(id, bytes, is_fact);
      if (is_fact && bytes >= 0) RC_ASSERT(charged.accepted);
      const Bytes after = world.pool.ledger().find(id)->charged;
      const std::uint64_t expected = before.value + static_cast<std::uint64_t>(charged.accepted ? bytes : 0);
      RC_ASSERT(after.value == expected);
      return world.enqueue(charged.releases);
    }
    case 11: {
      if (holder.chunks.empty()) return;
      const ChunkId chunk = pick(dice, holder.chunks);
      const auto release = world.pool.revoke(id, chunk);
      RC_ASSERT(release.has_value());
      world.dead.insert(chunk);
      holder.chunks.erase(chunk);
      holder.unacknowledged.erase(chunk);
      return world.enqueue({*release});
    }
    default: return;
  }
}

}  // namespace

namespace {

// Whatever happened: when all sessions are gone and all commands done, the device is as empty as in the beginning.
void end_all(World& world, Bytes headroom) {
  while (!world.sessions.empty()) {
    const SessionId id = world.sessions.begin()->first;
    world.sessions.erase(id);
    world.enqueue(world.pool.end(id));
  }
  for (int round = 0; round < 2; ++round) {
    world.enqueue(world.pool.configure(0_B, headroom));
    while (!world.queue.empty()) world.step(false);
  }
  world.check();
  RC_ASSERT(world.backed.empty());
  RC_ASSERT(world.pool.totals().reserved() == 0_B);
}

// Steps in worlds of 1000 each, walked every 16 steps.
void run_model(std::uint64_t steps, std::uint64_t seed) {
  FastDice dice{std::mt19937_64(seed)};
  try {
    for (std::uint64_t done = 0; done < steps; done += 1000) {
      const Bytes capacity = Bytes{dice.below<std::uint64_t>(16, 256)} * (1 << 20);
      const Bytes headroom = flip(dice) ? 4_MiB : 0_B;
      World world(capacity, Bytes{dice.below<std::uint64_t>(0, 128)} * (1 << 20), headroom);
      world.pool.observe_free(capacity);
      for (int i = 1; i <= 1000; ++i) {
        random_step(world, dice);
        if (i % 16 == 0) world.check();
      }
      end_all(world, headroom);
    }
  } catch (const rc::detail::CaseResult& fault) {
    FAIL("seed " << seed << ": " << fault.description);
  }
}

}  // namespace

TEST_CASE("Pool: keeps its promises under random sessions, failures and deaths") {
  CHECK(rc::check("exact ledger, no foreign or dirty bytes, nothing refused that fits", [] {
    const Bytes capacity = Bytes{*rc::gen::inRange<std::uint64_t>(16, 256)} * (1 << 20);
    const Bytes retain = Bytes{*rc::gen::inRange<std::uint64_t>(0, 128)} * (1 << 20);
    const Bytes headroom = *rc::gen::element(0_B, 4_MiB);
    World world(capacity, retain, headroom);
    world.pool.observe_free(capacity);
    ShrinkingDice dice;
    const int steps = *rc::gen::inRange(1, 250);
    for (int i = 0; i < steps; ++i) {
      random_step(world, dice);
      world.check();
    }
    end_all(world, headroom);
  }));
}

TEST_CASE("Pool: keeps its promises over a million steps") { run_model(1'000'000, 1); }

TEST_CASE("Pool: keeps its promises over a hundred million steps", "[.long]") { run_model(100'000'000, 2); }
