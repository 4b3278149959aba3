// What good policy files mean.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "policies/file/policy.hpp"
#include "policies/file/values.hpp"
#include "tests/support/catch.hpp"

using namespace vramd::policy;
namespace protocol = vramd::protocol;

namespace {

// A folder of this process that goes away with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "vramd-policy-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

Policy good(const std::string& text) {
  const Parsed parsed = parse(text);
  for (const Diagnostic& diagnostic : parsed.diagnostics) UNSCOPED_INFO(diagnostic.text("f"));
  REQUIRE(parsed.policy.has_value());
  return *parsed.policy;
}

std::vector<std::string> warnings_of(const std::string& text) {
  std::vector<std::string> warnings;
  for (const Diagnostic& diagnostic : parse(text).diagnostics) warnings.push_back(diagnostic.text("f"));
  return warnings;
}

}  // namespace

TEST_CASE("Policy file: the smallest one gives the defaults") {
  const Policy policy = good(R"({"version": 1})");
  CHECK(policy.mode == protocol::Mode::pool);
  CHECK(policy.pool_retain.is_percent);
  CHECK(policy.pool_retain.percent == 5);
  CHECK(policy.pool_headroom.bytes == 256ull << 20);
  CHECK(policy.sessions.empty());
  CHECK(policy.metrics_listen == "127.0.0.1:9845");
}

TEST_CASE("Policy file: every key that is acted on arrives") {
  const Policy policy = good(R"({
    // comments are fine
    "$schema": "x", "version": 1, "mode": "observe", "pool": {"retain": 1048576, "headroom": "1.5GiB"},
    "metrics": {"listen": "[::1]:0"},
    "sessions": [
      {"match": {"user": "alice", "group": "g", "command": "jupyter*", "container": "host", "cgroup": "/a", "job": "j?"},
       "gpus": [0, 2], "limit": "12GiB", "reserve": "1GiB", "per": "user", "priority": "interactive"},
      {"match": {"any": true}, "limit": "50%"}
    ]
  })");
  CHECK(policy.mode == protocol::Mode::observe);
  CHECK(policy.pool_retain.bytes == 1048576);
  CHECK_FALSE(policy.pool_retain.is_percent);
  CHECK(policy.pool_headroom.bytes == 3ull << 29);
  CHECK(policy.metrics_listen == "[::1]:0");
  REQUIRE(policy.sessions.size() == 2);
  const SessionRule& first = policy.sessions[0];
  CHECK(first.match.user == "alice");
  CHECK(first.match.group == "g");
  CHECK(first.match.command == "jupyter*");
  CHECK(first.match.container == "host");
  CHECK(first.match.cgroup == "/a");
  CHECK(first.match.job == "j?");
  CHECK_FALSE(first.match.any);
  CHECK(first.gpus == std::vector<int>{0, 2});
  CHECK(first.limit->bytes == 12ull << 30);
  CHECK(first.reserve->bytes == 1ull << 30);
  CHECK(first.per == Per::user);
  CHECK(first.priority == protocol::Priority::interactive);
  CHECK(first.line == 6);
  const SessionRule& second = policy.sessions[1];
  CHECK(second.match.any);
  CHECK_FALSE(second.gpus.has_value());
  CHECK(second.limit->percent == 50);
  CHECK(second.per == Per::session);
  CHECK(second.priority == protocol::Priority::normal);
  CHECK(second.line == 8);
}

TEST_CASE("Policy file: keys for later versions give one warning each and no policy change") {
  const std::string text = R"({"version": 1,
 "moves": {"max_pause": "5ms", "max_drain": "1s"},
 "staging": {"enabled": false, "slots": "auto"},
 "policies": [{"module": "cold-chunk", "after": "10s"}],
 "oom": {"steps": ["limbo"]}})";
  CHECK(good(text).mode == protocol::Mode::pool);
  CHECK(warnings_of(text) ==
        std::vector<std::string>{"f:2:2: warning: moves: not acted on by this version; it is only checked",
                                 "f:3:2: warning: staging: not acted on by this version; it is only checked",
                                 "f:4:2: warning: policies: not acted on by this version; it is only checked",
                                 "f:5:2: warning: oom: not acted on by this version; it is only checked"});
}

TEST_CASE("Policy file: mode full is kept and warned about") {
  const std::string text = R"({"version": 1, "mode": "full"})";
  CHECK(good(text).mode == protocol::Mode::full);
  CHECK(warnings_of(text) == std::vector<std::string>{"f:1:24: warning: mode: this version does not move live blocks, so full "
                                                      "works like pool; write \"pool\""});
}

TEST_CASE("Policy file: a rule for Slurm jobs applies to nobody rather than to everybody") {
  const Policy policy = good(R"({"version": 1, "sessions": [{"match": {"slurm_job": "*"}, "limit": "1GiB"},
                                                             {"match": {"any": true}, "limit": "2GiB"}]})");
  REQUIRE(policy.sessions.size() == 1);
  CHECK(policy.sessions[0].limit->bytes == 2ull << 30);
}

TEST_CASE("Policy file: any beside other fields does not widen the match") {
  const Policy policy = good(R"({"version": 1, "sessions": [{"match": {"any": true, "user": "bob"}}]})");
  REQUIRE(policy.sessions.size() == 1);
  CHECK_FALSE(policy.sessions[0].match.any);
  CHECK(policy.sessions[0].match.user == "bob");
}

TEST_CASE("Policy file: the number of problems is bounded and the verdict is still right") {
  std::string text = R"({"version": 1)";
  for (int i = 0; i < 500; ++i) text += ", \"wrong" + std::to_string(i) + "\": 1";
  const Parsed parsed = parse(text + "}");
  CHECK_FALSE(parsed.policy.has_value());
  REQUIRE(parsed.diagnostics.size() == 101);
  CHECK(parsed.diagnostics.back().what == "400 more problems");
}

TEST_CASE("Policy file: what cannot be read is a diagnostic") {
  const TemporaryFolder folder;
  const auto first = [](const Parsed& parsed) {
    REQUIRE_FALSE(parsed.policy.has_value());
    REQUIRE(parsed.diagnostics.size() == 1);
    return parsed.diagnostics[0].text("f");
  };
  CHECK(first(parse_file((folder / "missing").string())) ==
        "f:1:1: error: cannot be opened: No such file or directory; check the path");
  CHECK(first(parse_file((folder / ".").string())) == "f:1:1: error: not a regular file; name a file that holds JSON text");
  const std::string fifo = (folder / "fifo").string();
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);  // must not block
  CHECK(first(parse_file(fifo)) == "f:1:1: error: not a regular file; name a file that holds JSON text");
  std::ofstream(folder / "good.json") << R"({"version": 1, "mode": "off"})";
  const Parsed parsed = parse_file((folder / "good.json").string());
  REQUIRE(parsed.policy.has_value());
  CHECK(parsed.policy->mode == protocol::Mode::off);
}

TEST_CASE("Amount: sizes and percentages") {
  CHECK(parse_amount("12GiB")->bytes == 12ull << 30);
  CHECK(parse_amount("512MiB")->bytes == 512ull << 20);
  CHECK(parse_amount("0")->bytes == 0);
  CHECK(parse_amount("7B")->bytes == 7);
  CHECK(parse_amount("0.1KiB")->bytes == 102);
  CHECK(parse_amount("75%")->percent == 75);
  CHECK(parse_amount("1048576TiB")->bytes == kMaxBytes);
  for (const char* bad : {"", " ", "-1", "+1", "1048576", "12 GiB", "12GB", "1e9", "101%", "1.5", "GiB", "1..5GiB", "0x10", "1048577TiB"})
    CHECK_FALSE(parse_amount(bad).has_value());
}

TEST_CASE("Amount: a share of a device rounds down and never exceeds it") {
  CHECK(Amount{0, 50, true}.of(101) == 50);
  CHECK(Amount{0, 100, true}.of(UINT64_MAX) == UINT64_MAX);
  CHECK(Amount{0, 0, true}.of(1000) == 0);
  CHECK(Amount{77, 0, false}.of(10) == 77);
}

TEST_CASE("Durations") {
  CHECK(*check_duration("250ms") == 250'000'000);
  CHECK(*check_duration("1.5s") == 1'500'000'000);
  CHECK(*check_duration("10m") == 600'000'000'000);
  for (const char* bad : {"", "5", "5sec", "-1s", "9999999h", "s"}) CHECK_FALSE(check_duration(bad).has_value());
}
