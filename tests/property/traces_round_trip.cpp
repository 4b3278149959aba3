// Random traces come back as they were written; damaged ones are refused or read, and never break the reader.
#include <rapidcheck.h>

#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_file.hpp"
#include "tools/traces/format.hpp"
#include "tools/traces/reader.hpp"
#include "tools/traces/writer.hpp"

using namespace vramd::traces;
using vramd::test::TemporaryFile;

namespace {

// A valid trace: decisions are drawn, validity is by construction.
std::vector<Event> draw_trace() {
  std::vector<Event> events;
  std::vector<Event> live;
  std::uint64_t next_id = 0, time = 0;
  const auto add_block = [&](Op op) {
    const std::uint64_t size = *rc::gen::inRange<std::uint64_t>(1, std::uint64_t{1} << 40);
    const auto stream = op == Op::present ? 0U : *rc::gen::inRange<std::uint32_t>(0, 4);
    events.push_back({op, next_id++, size, stream, time});
    live.push_back(events.back());
  };
  for (int present = *rc::gen::inRange(0, 5); present > 0; --present) add_block(Op::present);
  for (int count = *rc::gen::inRange(0, 60); count > 0; --count) {
    time += *rc::gen::inRange<std::uint64_t>(0, 1000);
    const int choice = *rc::gen::inRange(0, 10);
    if (choice == 0) {
      events.push_back({*rc::gen::element(Op::grew, Op::shrank, Op::marker), 0, 2097152, 0, time});
    } else if (choice < 6 || live.empty()) {
      add_block(Op::allocate);
    } else {
      const auto victim = static_cast<std::ptrdiff_t>(*rc::gen::inRange<std::size_t>(0, live.size()));
      const Event born = live[static_cast<std::size_t>(victim)];
      live.erase(live.begin() + victim);
      events.push_back({Op::release, born.id, born.size, born.stream, time});
    }
  }
  return events;
}

}  // namespace

TEST_CASE("Reader and Writer: a random trace reads back equal") {
  CHECK(rc::check([] {
    const std::vector<Event> events = draw_trace();
    const TemporaryFile file("", *rc::gen::element<std::string>(".csv", ".csv.gz"));
    Writer writer(file.path());
    for (const Event& event : events) writer.write(event);
    RC_ASSERT(writer.close());
    Reader reader(file.path());
    std::vector<Event> back;
    for (Event event; reader.next(event);) back.push_back(event);
    RC_ASSERT(reader.error() == "");
    RC_ASSERT(back == events);
  }));
}

TEST_CASE("Reader: of a damaged trace it returns a valid prefix and an error, or a valid trace") {
  CHECK(rc::check([] {
    std::string text(kHeader);
    text += '\n';
    for (const Event& event : draw_trace()) append_line(event, text);
    for (int damage = *rc::gen::inRange(1, 4); damage > 0; --damage) {
      text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
    }
    const TemporaryFile file(text, ".csv");
    Reader reader(file.path());
    std::vector<std::uint64_t> sizes;
    for (Event event; reader.next(event);) {
      if (makes_live(event.op)) {
        RC_ASSERT(event.id == sizes.size());
        RC_ASSERT(event.size > 0);
        sizes.push_back(event.size);
      } else if (event.op == Op::release) {
        RC_ASSERT(sizes.at(event.id) == event.size);
        sizes[event.id] = 0;
      }
    }
    if (!reader.error().empty()) RC_ASSERT(reader.error().find("; expected ") != std::string::npos);
  }));
}
