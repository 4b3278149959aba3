// Counts of traces that can be checked by hand.
#include "tools/traces/statistics.hpp"

#include "tests/support/catch.hpp"

using namespace vramd::traces;

TEST_CASE("Statistics: the live peak is the largest sum of live sizes, blocks present at first included") {
  Statistics statistics;
  statistics.add({Op::present, 0, 100, 0, 0});
  statistics.add({Op::allocate, 1, 50, 0, 1});
  statistics.add({Op::release, 0, 100, 0, 2});
  statistics.add({Op::allocate, 2, 60, 1, 3});
  CHECK(statistics.live().peak_bytes() == 150);
  CHECK(statistics.live().live_bytes() == 110);
  CHECK(statistics.live().live_count() == 2);
  CHECK(statistics.allocated_bytes() == 110);
  CHECK(statistics.distinct_sizes() == 2);
  CHECK(statistics.streams() == 2);
  CHECK(statistics.microseconds() == 3);
}

TEST_CASE("Statistics: life spans count allocator events and leave out what was present") {
  Statistics statistics;
  statistics.add({Op::present, 0, 1, 0, 0});
  statistics.add({Op::allocate, 1, 1, 0, 0});  // released 2 events later
  statistics.add({Op::allocate, 2, 1, 0, 0});  // never released
  statistics.add({Op::grew, 0, 9, 0, 0});      // not an event of the allocator's user
  statistics.add({Op::release, 1, 1, 0, 0});
  statistics.add({Op::release, 0, 1, 0, 0});
  CHECK(statistics.released_within(1) == 0);
  CHECK(statistics.released_within(2) == 1);
  CHECK(statistics.lived_beyond(1) == 2);
  CHECK(statistics.lived_beyond(2) == 0);
}

TEST_CASE("Statistics: prints one name and value per line") {
  Statistics statistics;
  statistics.add({Op::allocate, 0, 7, 0, 0});
  CHECK(statistics.text() ==
        "present 0\nallocations 1\nfrees 0\nreservation-events 0\nmarkers 0\nstreams 1\nmicroseconds 0\n"
        "live-peak-bytes 7\nlive-end-bytes 7\nlive-end-blocks 1\nallocated-bytes 7\ndistinct-sizes 1\n"
        "freed-within-10-events 0\nlived-over-1000-events 0\n");
}
