// Whatever bytes a policy file holds, reading it ends, and an absent policy always has an error that says
// where.
#include <rapidcheck.h>

#include <algorithm>
#include <string>

#include "policies/file/policy.hpp"
#include "tests/support/catch.hpp"

using vramd::policy::Diagnostic;
using vramd::policy::Parsed;

namespace {

const std::string kGood = R"({"version": 1, "mode": "pool", "pool": {"retain": "5%", "headroom": 268435456},
 "sessions": [{"match": {"user": "a*"}, "gpus": [0, 1], "limit": "1.5GiB", "per": "user"},
              {"match": {"any": true}, "limit": "50%", "priority": "batch"}],
 "staging": {"enabled": false}, "metrics": {"listen": "127.0.0.1:9845"}})";

void require_sound(const std::string& text) {
  const Parsed parsed = vramd::policy::parse(text);
  const bool has_error = std::any_of(parsed.diagnostics.begin(), parsed.diagnostics.end(),
                                     [](const Diagnostic& d) { return d.severity == Diagnostic::Severity::error; });
  RC_ASSERT(parsed.policy.has_value() != has_error);
  const int lines = 1 + static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  for (const Diagnostic& d : parsed.diagnostics) {
    RC_ASSERT(d.line >= 1 && d.line <= lines);
    RC_ASSERT(d.column >= 1);
    RC_ASSERT(!d.what.empty() && !d.instead.empty());
    const std::string shown = d.text("f");
    RC_ASSERT(shown.size() < 2000);
    RC_ASSERT(std::none_of(shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20; }));
  }
}

bool holds(const char* description, void (*property)()) { return rc::check(description, property); }

}  // namespace

TEST_CASE("Policy file: any bytes are read to an end") {
  CHECK(holds("random bytes", [] { require_sound(*rc::gen::arbitrary<std::string>()); }));
}

TEST_CASE("Policy file: a good file with some bytes changed, cut or repeated is read to an end") {
  REQUIRE(vramd::policy::parse(kGood).policy.has_value());
  CHECK(holds("mutations", [] {
    std::string text = kGood;
    const int edits = *rc::gen::inRange(1, 5);
    for (int i = 0; i < edits; ++i) {
      const auto at = static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(text.size())));
      switch (*rc::gen::inRange(0, 4)) {
        case 0: text[at] = *rc::gen::arbitrary<char>(); break;
        case 1: text.erase(at, 1); break;
        case 2: text.insert(at, text.substr(at / 2, 9)); break;
        default: text.insert(at, 1, *rc::gen::elementOf(std::string("{}[],:\"\\-0e.%/*"))); break;
      }
      if (text.empty()) text = " ";
    }
    require_sound(text);
  }));
}

TEST_CASE("Policy file: cut off anywhere, it is an error and never a policy") {
  for (std::size_t length = 0; length < kGood.size(); ++length)
    CHECK_FALSE(vramd::policy::parse(kGood.substr(0, length)).policy.has_value());
}
