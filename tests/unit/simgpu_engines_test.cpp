// Bookings of a copy engine; see tools/simgpu/driver/engines.hpp.
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"
#include "tools/simgpu/driver/engines.hpp"

using simgpu::book;

TEST_CASE("engine: a free one begins now, a busy one when it becomes free") {
  std::atomic<std::int64_t> free_at{0};
  CHECK(book(free_at, 1000, 50) == 1050);
  CHECK(book(free_at, 1010, 50) == 1100);  // waits for the first
  CHECK(book(free_at, 5000, 50) == 5050);  // long idle: no credit for the time
  CHECK(book(free_at, 4000, 10) == 5060);  // a clock read earlier by another thread
}

TEST_CASE("engine: bookings of many threads lie one after the other") {
  constexpr int kThreads = 4, kBookings = 5000;
  std::atomic<std::int64_t> free_at{0};
  std::vector<std::vector<std::int64_t>> ends(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : ends)
    threads.emplace_back([&] {
      for (int i = 0; i < kBookings; ++i) mine.push_back(book(free_at, 0, 3));
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<bool> taken(kThreads * kBookings);
  for (const auto& mine : ends)
    for (const std::int64_t end : mine) {
      REQUIRE(end % 3 == 0);
      const auto slot = static_cast<std::size_t>(end / 3 - 1);
      REQUIRE(slot < taken.size());
      REQUIRE_FALSE(taken[slot]);
      taken[slot] = true;
    }
}
