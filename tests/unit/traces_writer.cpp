// What the writer of traces writes.
#include "tools/traces/writer.hpp"

#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_file.hpp"
#include "tools/traces/generate.hpp"
#include "tools/traces/reader.hpp"

using namespace vramd::traces;
using vramd::test::TemporaryFile;

namespace {

std::vector<Event> some_events() {
  TransformerShape shape;
  shape.layers = 3;
  shape.steps = 4;
  std::vector<Event> events;
  generate_transformer(shape, [&](const Event& event) { events.push_back(event); });
  return events;
}

void write_all(const std::string& path, const std::vector<Event>& events) {
  Writer writer(path);
  for (const Event& event : events) writer.write(event);
  REQUIRE(writer.close());
}

}  // namespace

TEST_CASE("Writer: writes one line per event, every op with its letter") {
  const TemporaryFile file("", ".csv");
  write_all(file.path(), {{Op::present, 0, 5, 0, 0},
                          {Op::grew, 0, 20971520, 0, 0},
                          {Op::allocate, 1, 7, 2, 1},
                          {Op::release, 0, 5, 0, 2},
                          {Op::shrank, 0, 20971520, 0, 3},
                          {Op::marker, 0, 0, 0, 18446744073709551615ULL}});
  CHECK(file.content() ==
        "op,id,size,stream,t_us\np,0,5,0,0\nS,0,20971520,0,0\na,1,7,2,1\nf,0,5,0,2\ns,0,20971520,0,3\n"
        "O,0,0,0,18446744073709551615\n");
}

TEST_CASE("Writer: what it writes, plain or compressed, reads back equal") {
  const std::vector<Event> events = some_events();
  const TemporaryFile plain("", ".csv"), compressed("", ".csv.gz");
  for (const TemporaryFile* file : {&plain, &compressed}) {
    write_all(file->path(), events);
    Reader reader(file->path());
    std::vector<Event> back;
    for (Event event; reader.next(event);) back.push_back(event);
    CHECK(reader.error() == "");
    CHECK(back == events);
  }
  CHECK(compressed.content().size() * 3 < plain.content().size());
  CHECK(compressed.content().substr(0, 2) == "\x1f\x8b");
}

TEST_CASE("Writer: a compressed trace that was cut is refused") {
  const TemporaryFile whole("", ".csv.gz");
  write_all(whole.path(), some_events());
  const TemporaryFile cut(whole.content().substr(0, whole.content().size() / 2), ".csv.gz");
  Reader reader(cut.path());
  Event event;
  while (reader.next(event)) {
  }
  CHECK(reader.error().find("cannot read") != std::string::npos);
  CHECK(reader.error().find("expected plain text or a complete gzip file") != std::string::npos);
}

TEST_CASE("Writer: says which file it cannot write") {
  Writer missing("/nowhere/trace.csv");
  missing.write({});
  CHECK_FALSE(missing.close());
  CHECK(missing.error() == "/nowhere/trace.csv: cannot create: No such file or directory");

  Writer full("/dev/full");
  for (int i = 0; i < 100'000; ++i) full.write({});
  CHECK_FALSE(full.close());
  CHECK(full.error() == "/dev/full: cannot write: No space left on device");
}
