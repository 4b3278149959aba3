// Parts of vramctl that are plain functions.
#include <string>

#include "tests/support/catch.hpp"
#include "tools/vramctl/elf.hpp"
#include "tools/vramctl/format.hpp"
#include "tools/vramctl/launch.hpp"
#include "tools/vramctl/status_values.hpp"

using namespace vramd::ctl;

TEST_CASE("Sizes for people: three digits and no 1024 of a unit") {
  CHECK(size_text(0) == "0 B");
  CHECK(size_text(1023) == "1023 B");
  CHECK(size_text(1024) == "1 KiB");
  CHECK(size_text(3ull << 29) == "1.50 GiB");
  CHECK(size_text((1ull << 30) - 1) == "1 GiB");
  CHECK(size_text(80ull << 30) == "80 GiB");
  CHECK(size_text(UINT64_MAX) == "16 EiB");
}

TEST_CASE("Durations for people: two units") {
  CHECK(duration_text(0) == "0 s");
  CHECK(duration_text(61) == "1 min 1 s");
  CHECK(duration_text(11520) == "3 h 12 min");
  CHECK(duration_text(183600) == "2 d 3 h");
}

TEST_CASE("Shell words: quoted only where the shell would read them otherwise") {
  CHECK(shell_quoted("a-b_c/1.5") == "a-b_c/1.5");
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("it's $HOME") == "'it'\\''s $HOME'");
}

TEST_CASE("Lists: an entry is put first and stands there once") {
  CHECK(prepended("a", nullptr, ":") == "a");
  CHECK(prepended("a", "b:a::c", ":") == "a:b:c");
  CHECK(prepended("/x/libvramd.so", "libm.so /x/libvramd.so:libz.so", ": ") == "/x/libvramd.so:libm.so:libz.so");
}

TEST_CASE("Simulated GPU: only what it needs is taken from a daemon") {
  const auto taken =
      simulator_variables({{"LD_LIBRARY_PATH", "/s"}, {"SIM_NAME", "n"}, {"LD_PRELOAD", "/evil.so"}, {"PATH", "/evil"}});
  REQUIRE(taken.size() == 2);
  CHECK(taken[0].first == "LD_LIBRARY_PATH");
  CHECK(taken[1].first == "SIM_NAME");
}

TEST_CASE("Versions of glibc are compared as numbers") {
  CHECK(version_less("2.4", "2.31"));
  CHECK_FALSE(version_less("2.31", "2.4"));
  CHECK_FALSE(version_less("2.31", "2.31"));
  CHECK(version_less("", "2.2"));
}

TEST_CASE("Status: no limit is written in three ways") {
  for (const char* limit : {"null", "18446744073709551615", "\"none\""}) {
    const auto status = read_status(std::string(R"({"sessions": [{"devices": [{"index": 0, "limit": )") + limit + "}]}]}");
    REQUIRE(status.has_value());
    REQUIRE(status->sessions.size() == 1);
    CHECK_FALSE(status->sessions[0].devices.at(0).limit.has_value());
  }
  CHECK_FALSE(read_status("[]").has_value());
  CHECK_FALSE(read_status("{").has_value());
}
