// Generated traces are valid, the same every time, and like recorded ones.
#include "tools/traces/generate.hpp"

#include <set>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_file.hpp"
#include "tools/traces/reader.hpp"
#include "tools/traces/statistics.hpp"
#include "tools/traces/writer.hpp"

using namespace vramd::traces;
using vramd::test::TemporaryFile;

namespace {

std::vector<Event> generate(const TransformerShape& shape) {
  REQUIRE(check_shape(shape) == "");
  std::vector<Event> events;
  generate_transformer(shape, [&](const Event& event) { events.push_back(event); });
  return events;
}

Statistics statistics_of(const std::vector<Event>& events) {
  Statistics statistics;
  for (const Event& event : events) statistics.add(event);
  return statistics;
}

std::string reader_error(const std::vector<Event>& events) {
  const TemporaryFile file("", ".csv");
  Writer writer(file.path());
  for (const Event& event : events) writer.write(event);
  REQUIRE(writer.close());
  Reader reader(file.path());
  std::size_t count = 0;
  for (Event event; reader.next(event);) ++count;
  if (reader.error().empty()) CHECK(count == events.size());
  return reader.error();
}

TransformerShape small() {
  TransformerShape shape;
  shape.layers = 2;
  shape.dim = 64;
  shape.heads = 4;
  shape.vocab = 512;
  shape.batch = 4;
  shape.context = 64;
  return shape;
}

}  // namespace

TEST_CASE("generate_transformer: the reader accepts every shape") {
  TransformerShape shape = small();
  CHECK(reader_error(generate(shape)) == "");
  shape.streams = 2;
  CHECK(reader_error(generate(shape)) == "");
  shape.context_min = 7;
  shape.steps = 9;
  CHECK(reader_error(generate(shape)) == "");
  shape = {1, 1, 1, 1, 1, 1, 1, 1, 1, 0};
  CHECK(reader_error(generate(shape)) == "");
  CHECK(reader_error(generate(TransformerShape{})) == "");
}

TEST_CASE("generate_transformer: one seed, one trace") {
  TransformerShape shape = small();
  const std::vector<Event> first = generate(shape);
  CHECK(generate(shape) == first);
  shape.seed = 2;
  CHECK(generate(shape) != first);
}

TEST_CASE("generate_transformer: weights are present, Adam's state stays, everything else goes") {
  const Statistics statistics = statistics_of(generate(TransformerShape{}));
  const std::uint64_t parameters = 50257 * 768 + 1024 * 768 + 12 * (12 * 768 * 768 + 13 * 768) + 2 * 768;
  CHECK(statistics.count(Op::present) == 148);
  CHECK(statistics.live().live_count() == 3 * 148);
  CHECK(statistics.live().live_bytes() == 3 * 4 * parameters);
}

TEST_CASE("generate_transformer: life spans, sizes and rates are those of recordings") {
  const Statistics statistics = statistics_of(generate(TransformerShape{}));
  const auto allocations = static_cast<double>(statistics.count(Op::allocate));
  const double brief = static_cast<double>(statistics.released_within(10)) / allocations;
  const double lasting = static_cast<double>(statistics.lived_beyond(1000)) / allocations;
  CHECK(brief > 0.61);
  CHECK(brief < 0.75);
  CHECK(lasting > 0.09);
  CHECK(lasting < 0.17);
  CHECK(statistics.distinct_sizes() >= 15);
  CHECK(statistics.distinct_sizes() <= 27);
  const double per_millisecond = allocations / (static_cast<double>(statistics.microseconds()) / 1000);
  CHECK(per_millisecond > 12);
  CHECK(per_millisecond < 27);
}

TEST_CASE("generate_transformer: a variable context changes the sizes from step to step") {
  TransformerShape shape = small();
  shape.steps = 10;
  const std::size_t fixed = statistics_of(generate(shape)).distinct_sizes();
  shape.context_min = 8;
  CHECK(statistics_of(generate(shape)).distinct_sizes() > 3 * fixed);
}

TEST_CASE("generate_transformer: a second stream carries batches and reductions") {
  TransformerShape shape = small();
  CHECK(statistics_of(generate(shape)).streams() == 1);
  shape.streams = 2;
  CHECK(statistics_of(generate(shape)).streams() == 2);
}

TEST_CASE("check_shape: says what is out of range") {
  TransformerShape shape;
  shape.layers = 0;
  CHECK(check_shape(shape) == "layers 0 is out of range; expected 1 to 1000");
  shape = {};
  shape.context_min = 1025;
  CHECK(check_shape(shape) == "context-min 1025 is out of range; expected 0 to 1024");
  shape = {};
  shape.streams = 3;
  CHECK(check_shape(shape) == "streams 3 is out of range; expected 1 to 2");
}
