#include "daemon/rules.hpp"

#include "tests/support/catch.hpp"

using namespace vramd;

namespace {

const Subject kAnna{"anna", {"staff", "gpu-users"}, "python3", "host", "/user.slice/session-3.scope", "night-7"};

policy::SessionRule rule_for(policy::Match match, int line = 1) {
  policy::SessionRule rule;
  rule.match = std::move(match);
  rule.line = line;
  return rule;
}

}  // namespace

TEST_CASE("rules: every field that is set has to fit") {
  policy::Match match;
  match.user = "anna";
  CHECK(matches(match, kAnna));
  match.command = "python*";
  CHECK(matches(match, kAnna));
  match.job = "day-*";
  CHECK_FALSE(matches(match, kAnna));
}

TEST_CASE("rules: patterns are shell wildcards, for any of a user's groups") {
  policy::Match match;
  match.group = "gpu-*";
  CHECK(matches(match, kAnna));
  match.group = "gpu";
  CHECK_FALSE(matches(match, kAnna));
  match.group.reset();
  match.cgroup = "/user.slice/*";
  match.container = "hos?";
  CHECK(matches(match, kAnna));
  CHECK_FALSE(matches(match, Subject{}));
}

TEST_CASE("rules: an empty match and `any` fit everybody") {
  policy::Match match;
  CHECK(matches(match, kAnna));
  match.any = true;
  CHECK(matches(match, Subject{}));
}

TEST_CASE("rules: the first match on the device wins") {
  policy::Match anna;
  anna.user = "anna";
  policy::SessionRule second_gpu = rule_for(anna, 1);
  second_gpu.gpus = std::vector<int>{1};
  const std::vector<policy::SessionRule> rules = {second_gpu, rule_for(anna, 2), rule_for({}, 3)};
  CHECK(first_match(rules, kAnna, 1)->line == 1);
  CHECK(first_match(rules, kAnna, 0)->line == 2);
  CHECK(first_match(rules, Subject{"bert", {}, "", "", "", ""}, 1)->line == 3);
  CHECK(first_match({}, kAnna, 0) == nullptr);
}

TEST_CASE("rules: sessions share what their rule says") {
  policy::SessionRule rule = rule_for({}, 9);
  const Subject bert{"bert", {}, "python3", "host", "/other", "night-7"};
  CHECK(sharing_key(rule, kAnna).empty());
  rule.per = policy::Per::user;
  CHECK(sharing_key(rule, kAnna) != sharing_key(rule, bert));
  rule.per = policy::Per::job;
  CHECK(sharing_key(rule, kAnna) == sharing_key(rule, bert));
  rule.per = policy::Per::rule;
  CHECK(sharing_key(rule, kAnna) == sharing_key(rule, bert));
  policy::SessionRule other = rule;
  other.line = 10;
  CHECK(sharing_key(rule, kAnna) != sharing_key(other, kAnna));
}

TEST_CASE("rules: a wish can only lower mode and priority") {
  using protocol::Mode;
  using protocol::Priority;
  CHECK(decide_mode(Mode::pool, Mode::unset) == Mode::pool);
  CHECK(decide_mode(Mode::pool, Mode::full) == Mode::pool);
  CHECK(decide_mode(Mode::pool, Mode::observe) == Mode::observe);
  CHECK(decide_mode(Mode::off, Mode::full) == Mode::off);
  CHECK(decide_mode(Mode::pool, static_cast<Mode>(99)) == Mode::pool);
  CHECK(decide_priority(Priority::normal, Priority::interactive) == Priority::normal);
  CHECK(decide_priority(Priority::normal, Priority::batch) == Priority::batch);
  CHECK(decide_priority(Priority::normal, Priority::unset) == Priority::normal);
}
