// What the reader of traces accepts, and the exact words with which it refuses.
#include "tools/traces/reader.hpp"

#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_file.hpp"

using namespace vramd::traces;
using vramd::test::TemporaryFile;

namespace {

constexpr const char* kFirstLine = "op,id,size,stream,t_us\n";

struct Reading {
  std::vector<Event> events;
  std::string error;  // without the path
};

Reading read(const std::string& content) {
  const TemporaryFile file(content, ".csv");
  Reader reader(file.path());
  Reading reading;
  for (Event event; reader.next(event);) reading.events.push_back(event);
  reading.error = reader.error();
  if (reading.error.rfind(file.path(), 0) == 0) reading.error.erase(0, file.path().size());
  Event more;
  CHECK_FALSE(reader.next(more));  // the end stays the end
  return reading;
}

std::string error_of(const std::string& lines) { return read(kFirstLine + lines).error; }

}  // namespace

TEST_CASE("Reader: returns the events of a good trace") {
  const Reading reading = read(std::string(kFirstLine) +
                               "p,0,512,0,0\nS,0,2097152,0,0\na,1,18446744073709551000,1,5\nf,1,18446744073709551000,1,5\n"
                               "f,0,512,0,6\na,2,1,4294967295,7");
  CHECK(reading.error == "");
  REQUIRE(reading.events.size() == 6);
  CHECK(reading.events[0] == Event{Op::present, 0, 512, 0, 0});
  CHECK(reading.events[1] == Event{Op::grew, 0, 2097152, 0, 0});
  CHECK(reading.events[2] == Event{Op::allocate, 1, 18446744073709551000ULL, 1, 5});
  CHECK(reading.events[5] == Event{Op::allocate, 2, 1, 4294967295, 7});
}

TEST_CASE("Reader: a trace without events is a trace") {
  CHECK(read(kFirstLine).error == "");
  CHECK(read(kFirstLine).events.empty());
}

TEST_CASE("Reader: names file, line, fault and expectation") {
  struct Case {
    std::string lines, error;
  };
  const Case cases[] = {
      {"x,0,1,0,0\n", ":2: op \"x\" is unknown; expected one of p a f S s O"},
      {"aa,0,1,0,0\n", ":2: op \"aa\" is unknown; expected one of p a f S s O"},
      {",0,1,0,0\n", ":2: op \"\" is unknown; expected one of p a f S s O"},
      {"a,0,1,0\n", ":2: \"a,0,1,0\" has 4 fields; expected 5: op,id,size,stream,t_us"},
      {"a,0,1,0,0,0\n", ":2: \"a,0,1,0,0,0\" has 6 fields; expected 5: op,id,size,stream,t_us"},
      {"\n", ":2: \"\" has 1 fields; expected 5: op,id,size,stream,t_us"},
      {"a,0,-1,0,0\n", ":2: size \"-1\" is not a number; expected decimal digits"},
      {"a,0,1 ,0,0\n", ":2: size \"1 \" is not a number; expected decimal digits"},
      {"a,,1,0,0\n", ":2: id \"\" is not a number; expected decimal digits"},
      {"a,00,1,0,0\n", ":2: id \"00\" is not a number; expected decimal digits"},
      {"a,0,1e9,0,0\n", ":2: size \"1e9\" is not a number; expected decimal digits"},
      {"a,0,1,0,0\r\n", ":2: t_us \"0\\x0d\" is not a number; expected decimal digits"},
      {"a,0,18446744073709551616,0,0\n",
       ":2: size \"18446744073709551616\" is too large; expected at most 18446744073709551615"},
      {"a,0,1,4294967296,0\n", ":2: stream \"4294967296\" is too large; expected at most 4294967295"},
      {"a,1,1,0,0\n", ":2: id 1 out of order; expected 0, ids are dense from 0 and never reused"},
      {"a,0,1,0,0\nf,0,1,0,1\na,0,1,0,2\n", ":4: id 0 out of order; expected 1, ids are dense from 0 and never reused"},
      {"a,0,0,0,0\n", ":2: block 0 has size 0; expected at least 1 byte"},
      {"a,0,1,0,0\nf,1,1,0,0\n", ":3: block 1 is freed and was never allocated; expected the id of an earlier p or a"},
      {"a,0,1,0,0\nf,0,1,0,0\nf,0,1,0,0\n", ":4: block 0 is freed twice; expected the id of a live block"},
      {"a,0,8,0,0\nf,0,9,0,0\n", ":3: block 0 is freed with size 9; expected 8 as at its allocation"},
      {"a,0,1,0,0\np,1,1,0,0\n", ":3: block 1 is declared present after the first a or f; expected every p before them"},
      {"a,0,1,0,9\na,1,1,0,8\n", ":3: t_us 8 runs backwards; expected at least 9"},
      {"S,1,1,0,0\n", ":2: id 1 of an S, s or O line; expected 0"},
      {"a,0,18446744073709551615,0,0\na,1,1,0,0\n",
       ":3: block 1 brings the live bytes over 64 bits; expected a smaller size than 1"},
  };
  for (const Case& bad : cases) {
    INFO(bad.lines);
    CHECK(error_of(bad.lines) == bad.error);
  }
}

TEST_CASE("Reader: checks the first line") {
  CHECK(read("").error == ":1: the file is empty; expected the first line \"op,id,size,stream,t_us\"");
  CHECK(read("a,0,1,0,0\n").error == ":1: first line \"a,0,1,0,0\"; expected \"op,id,size,stream,t_us\"");
}

TEST_CASE("Reader: events before a bad line are returned") {
  const Reading reading = read(std::string(kFirstLine) + "a,0,1,0,0\nbad\na,1,1,0,0\n");
  CHECK(reading.events.size() == 1);
  CHECK(reading.error == ":3: \"bad\" has 1 fields; expected 5: op,id,size,stream,t_us");
}

TEST_CASE("Reader: bytes that are no text are shown, and cut") {
  CHECK(error_of(std::string("a,0,1,0,\0\n", 10)) == ":2: t_us \"\\x00\" is not a number; expected decimal digits");
  CHECK(error_of("a,0,1,0," + std::string(100, '\x7f') + "\n").find("...") != std::string::npos);
  CHECK(error_of(std::string(100'000, 'a')) == ":2: line of more than 4096 bytes; expected a text file of short lines");
}

TEST_CASE("Reader: a file that cannot be opened has no line") {
  Reader reader("/nowhere/trace.csv");
  Event event;
  CHECK_FALSE(reader.next(event));
  CHECK(reader.error() == "/nowhere/trace.csv: cannot open: No such file or directory");
}
