// Which rule of the policy is for a session. Pure.
#pragma once

#include <string>
#include <vector>

#include "policies/file/policy.hpp"

namespace vramd {

struct Subject {
  std::string user;
  std::vector<std::string> groups;
  std::string command, container, cgroup, job;
};

// All fields that the match sets must fit; patterns are shell wildcards.
bool matches(const policy::Match& match, const Subject& subject);

// The first rule that matches on this device; null when none does.
const policy::SessionRule* first_match(const std::vector<policy::SessionRule>& rules, const Subject& subject, int device_index);

// Names the sessions that share the limit of `rule` with `subject`: equal texts share. Empty = the session is
// alone.
std::string sharing_key(const policy::SessionRule& rule, const Subject& subject);

// The session's mode: its wish can only lower what the policy says, and no wish means the policy's.
protocol::Mode decide_mode(protocol::Mode policy, protocol::Mode wish);
protocol::Priority decide_priority(protocol::Priority rule, protocol::Priority wish);

const char* name_of(protocol::Mode mode);
const char* name_of(protocol::Priority priority);
const char* name_of(protocol::Source source);
const char* name_of(protocol::Verb verb);

}  // namespace vramd
