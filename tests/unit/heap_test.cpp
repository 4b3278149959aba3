#include <thread>
#include <vector>

#include "allocator/heap/device_heap.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_driver.hpp"

using namespace vramd;
using namespace vramd::literals;
using vramd::testing::FakeDriver;
using vramd::testing::FakeSource;
using Heap = heap::DeviceHeap<FakeSource>;

namespace {
const int kContext = 1;

struct Fixture {
  explicit Fixture(Bytes capacity = 4_GiB, heap::Config config = {})
      : source(fake, capacity), heap(driver, 0, source, config) {}
  ~Fixture() {
    CHECK(heap.consistent());
    CHECK(fake.crime == "");
  }
  DevicePtr take(Bytes size) {
    auto block = heap.allocate(size, &kContext);
    REQUIRE(block.has_value());
    return *block;
  }
  void free(DevicePtr p) {
    heap::BlockInfo info;
    REQUIRE(heap.begin_free(p, &info) == Heap::Owned::block);
    heap.finish_free(info);
  }

  FakeDriver fake;
  Driver driver = FakeDriver::table();
  FakeSource source;
  Heap heap;
};
}  // namespace

TEST_CASE("DeviceHeap: small blocks share a small chunk, 512 bytes apart") {
  Fixture f;
  const DevicePtr a = f.take(1_B), b = f.take(513_B), c = f.take(1_B);
  CHECK(b - a == 512_B);
  CHECK(c - b == 1024_B);
  CHECK(f.heap.totals().mapped == 2_MiB);
}

TEST_CASE("DeviceHeap: large blocks are 2 MiB aligned and never share a segment with small ones") {
  Fixture f;
  const DevicePtr small = f.take(100_B), large = f.take(1_MiB + 1_B);
  CHECK(address(large) % (2_MiB).value == 0);
  CHECK(f.heap.totals().mapped == 34_MiB);
  CHECK(f.take(2_MiB) - large == 2_MiB);
  CHECK(f.heap.totals().mapped == 34_MiB);
  CHECK(small != large);
}

TEST_CASE("DeviceHeap: a block of 100 MiB takes three large chunks and two small ones") {
  Fixture f;
  f.take(100_MiB);
  CHECK(f.source.acquired == 5);
  CHECK(f.fake.calls["set_access"] == 1);
}

TEST_CASE("DeviceHeap: best fit takes the smallest hole that is large enough, the lowest address first") {
  Fixture f;
  const DevicePtr a = f.take(4_KiB);
  f.take(512_B);
  const DevicePtr b = f.take(2_KiB);
  f.take(512_B);
  f.free(a);
  f.free(b);
  CHECK(f.take(1_KiB) == b);
  CHECK(f.take(1_KiB) == b + 1_KiB);
  CHECK(f.take(1_KiB) == a);
}

TEST_CASE("DeviceHeap: free neighbours merge on both sides") {
  Fixture f;
  const DevicePtr a = f.take(4_MiB), b = f.take(4_MiB), c = f.take(4_MiB);
  f.free(a);
  f.free(c);
  f.free(b);
  CHECK(f.take(32_MiB) == a);
  CHECK(f.source.acquired == 1);
}

TEST_CASE("DeviceHeap: a block in limbo is not reused") {
  Fixture f;
  const DevicePtr a = f.take(32_MiB);
  heap::BlockInfo info;
  REQUIRE(f.heap.begin_free(a, &info) == Heap::Owned::block);
  CHECK(info.size == 32_MiB);
  CHECK(f.take(32_MiB) != a);
  f.heap.finish_free(info);
  CHECK(f.take(32_MiB) == a);
}

TEST_CASE("DeviceHeap: a free that is undone leaves the block to the program, with its id") {
  Fixture f;
  const DevicePtr a = f.take(5000_B);
  heap::BlockInfo before, after;
  REQUIRE(f.heap.begin_free(a, &before) == Heap::Owned::block);
  CHECK(f.heap.find(a) == Heap::Owned::not_live);
  f.heap.undo_free(before);
  REQUIRE(f.heap.find(a, &after) == Heap::Owned::block);
  CHECK(after.id == before.id);
  CHECK(f.heap.totals().live == 5000_B);
  f.heap.undo_free(before);  // not in limbo: nothing happens
  f.free(a);
}

TEST_CASE("DeviceHeap: the end of a free does not touch a later block at the same address") {
  Fixture f;
  const DevicePtr a = f.take(32_MiB);
  heap::BlockInfo late, next;
  REQUIRE(f.heap.begin_free(a, &late) == Heap::Owned::block);
  f.heap.drop_context(&kContext, f.heap.last_id());  // while the first free still waits
  REQUIRE(f.take(32_MiB) == a);
  REQUIRE(f.heap.begin_free(a, &next) == Heap::Owned::block);
  f.heap.finish_free(late);
  CHECK(f.take(32_MiB) != a);
  f.heap.finish_free(next);
}

TEST_CASE("DeviceHeap: double free, interior pointers and foreign pointers are told apart") {
  Fixture f;
  const DevicePtr a = f.take(1000_B);
  heap::BlockInfo info;
  CHECK(f.heap.begin_free(a + 1_B, &info) == Heap::Owned::not_live);
  CHECK(f.heap.begin_free(DevicePtr{4096}, &info) == Heap::Owned::no);
  CHECK(f.heap.find(a + 999_B, &info) == Heap::Owned::block);
  CHECK(info.base == a);
  CHECK(f.heap.find(a + 1000_B) == Heap::Owned::not_live);
  f.free(a);
  CHECK(f.heap.begin_free(a, &info) == Heap::Owned::not_live);
  f.heap.finish_free(info);  // of no block in limbo: nothing happens
}

TEST_CASE("DeviceHeap: buffer ids rise and are never reused") {
  Fixture f;
  heap::BlockInfo first, second;
  const DevicePtr a = f.take(10_B);
  REQUIRE(f.heap.find(a, &first) == Heap::Owned::block);
  f.free(a);
  const DevicePtr b = f.take(10_B);
  REQUIRE(f.heap.find(b, &second) == Heap::Owned::block);
  CHECK(b == a);
  CHECK(second.id > first.id);
}

TEST_CASE("DeviceHeap: idle segments beyond the limit go back, the longest idle first") {
  Fixture f(4_GiB, {64_MiB});
  const DevicePtr a = f.take(64_MiB), b = f.take(64_MiB);
  f.free(a);
  CHECK(f.source.returned == 0);
  f.free(b);
  CHECK(f.source.returned == 2);
  CHECK(f.heap.totals().mapped == 64_MiB);
  CHECK(f.take(64_MiB) == b);
}

TEST_CASE("DeviceHeap: on shortage idle segments are given back and the request is tried again") {
  Fixture f(128_MiB, {1_GiB});
  const DevicePtr a = f.take(64_MiB);
  f.take(32_MiB);
  f.free(a);
  CHECK(f.heap.allocate(96_MiB, &kContext).has_value());
  CHECK(f.heap.totals().mapped == 128_MiB);
}

TEST_CASE("DeviceHeap: a request that only its exact size fits still succeeds") {
  Fixture f(6_MiB);
  CHECK(f.heap.allocate(3_MiB, &kContext).has_value());
  auto refused = f.heap.allocate(3_MiB, &kContext);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::out_of_memory);
  CHECK(f.source.out == 4_MiB);
}

TEST_CASE("DeviceHeap: sizes that overflow are out of memory") {
  Fixture f;
  auto refused = f.heap.allocate(Bytes{UINT64_MAX - 5}, &kContext);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::out_of_memory);
}

TEST_CASE("DeviceHeap: a failing driver or source call leaves nothing behind") {
  for (const char* call : {"acquire", "reserve", "map", "set_access"}) {
    for (int nth = 1; nth <= 5; ++nth) {
      INFO(call << " " << nth);
      Fixture f;
      f.fake.faults[call] = {nth, CUDA_ERROR_NOT_READY};
      auto block = f.heap.allocate(100_MiB, &kContext);
      if (block) continue;  // fewer calls than nth
      CHECK(block.error().code == ErrorCode::driver);
      CHECK(block.error().detail == CUDA_ERROR_NOT_READY);
      CHECK(f.fake.mappings.empty());
      CHECK(f.fake.reservations.empty());
      CHECK(f.source.out == 0_B);
      CHECK(f.heap.allocate(100_MiB, &kContext).has_value());
    }
  }
}

TEST_CASE("DeviceHeap: a chunk that cannot be unmapped is never given back") {
  Fixture f(4_GiB, {0_B});
  const DevicePtr a = f.take(64_MiB);
  f.fake.faults["unmap"] = {1, CUDA_ERROR_UNKNOWN};
  f.free(a);
  CHECK(f.source.returned == 1);
  CHECK(f.fake.mappings.size() == 1);
  CHECK(f.fake.reservations.size() == 1);
}

TEST_CASE("DeviceHeap: a chunk that cannot be unmapped while growing is rolled back is never given back") {
  for (const char* call : {"map", "set_access"}) {
    INFO(call);
    Fixture f;
    f.fake.faults[call] = {call[0] == 'm' ? 3 : 1, CUDA_ERROR_NOT_READY};
    f.fake.faults["unmap"] = {2, CUDA_ERROR_UNKNOWN};
    CHECK(!f.heap.allocate(100_MiB, &kContext));
    CHECK(f.source.returned == f.source.acquired - 1);
    CHECK(f.fake.mappings.size() == 1);
    CHECK(f.fake.reservations.size() == 1);
  }
}

TEST_CASE("DeviceHeap: the blocks of a context that is gone are dropped, others stay") {
  Fixture f(4_GiB, {0_B});
  const int other = 2;
  f.take(10_MiB);
  auto kept = f.heap.allocate(40_MiB, &other);
  REQUIRE(kept.has_value());
  f.heap.drop_context(&kContext, f.heap.last_id());
  CHECK(f.heap.totals().live == 40_MiB);
  CHECK(f.heap.find(*kept) == Heap::Owned::block);
}

TEST_CASE("DeviceHeap: the end of a context spares the blocks of a later one with the same handle") {
  Fixture f;
  const DevicePtr a = f.take(1000_B), b = f.take(1000_B), c = f.take(40_MiB);
  const std::uint64_t last = f.heap.last_id();
  const DevicePtr later = f.take(1000_B);
  f.heap.drop_context(&kContext, last);
  for (const DevicePtr gone : {a, b, c}) CHECK(f.heap.find(gone) == Heap::Owned::not_live);
  CHECK(f.heap.find(later) == Heap::Owned::block);
}

TEST_CASE("DeviceHeap: threads that want most of the device at once do not each end with half of it") {
  Fixture f(1_GiB, {0_B});
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> served{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        if (f.heap.allocate(700_MiB, &kContext)) ++served;
      });
    for (auto& thread : threads) thread.join();
    REQUIRE(served == 1);
    f.heap.drop_context(&kContext, f.heap.last_id());
  }
}

TEST_CASE("DeviceHeap: peers reach present and future blocks until access is taken away") {
  Fixture f;
  f.take(3_MiB);
  REQUIRE(f.heap.set_peer(2, true).has_value());
  f.take(64_MiB);
  for (auto& [at, mapping] : f.fake.mappings) CHECK(mapping.access == 0b101);
  REQUIRE(f.heap.set_peer(2, false).has_value());
  for (auto& [at, mapping] : f.fake.mappings) CHECK(mapping.access == 0b001);
}

TEST_CASE("DeviceHeap: threads allocate and free at once, and peers change meanwhile") {
  Fixture f(4_GiB, {16_MiB});
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::uint64_t seed = 88172645463325252ull + static_cast<std::uint64_t>(t);
      std::vector<DevicePtr> mine;
      for (int i = 0; i < 3000; ++i) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        if (mine.size() < 20 && seed % 3 != 0) {
          auto block = f.heap.allocate(Bytes{1 + (seed >> 20) % (seed % 7 == 0 ? 40u << 20 : 5000u)}, &kContext);
          if (block)
            mine.push_back(*block);
          else
            ++failures;
        } else if (!mine.empty()) {
          std::swap(mine[seed % mine.size()], mine.back());
          heap::BlockInfo info;
          if (f.heap.begin_free(mine.back(), &info) != Heap::Owned::block) ++failures;
          f.heap.finish_free(info);
          mine.pop_back();
        }
        if (t == 0 && i % 500 == 0 && !f.heap.set_peer(1, i % 1000 == 0)) ++failures;
      }
      for (DevicePtr p : mine) {
        heap::BlockInfo info;
        if (f.heap.begin_free(p, &info) != Heap::Owned::block) ++failures;
        f.heap.finish_free(info);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(f.heap.totals().live == 0_B);
  f.heap.give_back_idle({});
  CHECK(f.source.out == 0_B);
  CHECK(f.fake.reservations.empty());
}
