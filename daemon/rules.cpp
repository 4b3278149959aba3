#include "daemon/rules.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "daemon/text.hpp"

namespace vramd {
namespace {

bool fits(const std::optional<std::string>& pattern, const std::string& value) {
  return !pattern || ::fnmatch(pattern->c_str(), value.c_str(), 0) == 0;
}

}  // namespace

bool matches(const policy::Match& match, const Subject& subject) {
  const bool group_fits = !match.group || std::any_of(subject.groups.begin(), subject.groups.end(),
                                                      [&](const std::string& group) { return fits(match.group, group); });
  return group_fits && fits(match.user, subject.user) && fits(match.command, subject.command) &&
         fits(match.container, subject.container) && fits(match.cgroup, subject.cgroup) && fits(match.job, subject.job);
}

const policy::SessionRule* first_match(const std::vector<policy::SessionRule>& rules, const Subject& subject,
                                       int device_index) {
  for (const policy::SessionRule& rule : rules) {
    const bool here = !rule.gpus || std::find(rule.gpus->begin(), rule.gpus->end(), device_index) != rule.gpus->end();
    if (here && matches(rule.match, subject)) return &rule;
  }
  return nullptr;
}

std::string sharing_key(const policy::SessionRule& rule, const Subject& subject) {
  switch (rule.per) {
    case policy::Per::session: return {};
    case policy::Per::user: return text("line ", rule.line, " user ", subject.user);
    case policy::Per::job: return text("line ", rule.line, " job ", subject.job);
    case policy::Per::cgroup: return text("line ", rule.line, " cgroup ", subject.cgroup);
    case policy::Per::container: return text("line ", rule.line, " container ", subject.container);
    case policy::Per::rule: return text("line ", rule.line);
  }
  return {};
}

protocol::Mode decide_mode(protocol::Mode policy, protocol::Mode wish) {
  // The numbers of Mode ascend with what vramd does. What is out of range comes from a newer or a hostile
  // peer.
  const bool known = wish >= protocol::Mode::off && wish <= protocol::Mode::full;
  return known ? std::min(policy, wish) : policy;
}

protocol::Priority decide_priority(protocol::Priority rule, protocol::Priority wish) {
  const bool known = wish >= protocol::Priority::batch && wish <= protocol::Priority::interactive;
  return known ? std::min(rule, wish) : rule;
}

const char* name_of(protocol::Mode mode) {
  switch (mode) {
    case protocol::Mode::off: return "off";
    case protocol::Mode::observe: return "observe";
    case protocol::Mode::pool: return "pool";
    case protocol::Mode::full: return "full";
    case protocol::Mode::unset: break;
  }
  return "unset";
}

const char* name_of(protocol::Priority priority) {
  switch (priority) {
    case protocol::Priority::batch: return "batch";
    case protocol::Priority::normal: return "normal";
    case protocol::Priority::interactive: return "interactive";
    case protocol::Priority::unset: break;
  }
  return "unset";
}

const char* name_of(protocol::Verb verb) {
  switch (verb) {
    case protocol::Verb::trim: return "trim";
    case protocol::Verb::limit: return "limit";
    case protocol::Verb::reload: return "reload";
  }
  return "unknown";
}

const char* name_of(protocol::Source source) {
  switch (source) {
    case protocol::Source::daemon: return "daemon";
    case protocol::Source::local: return "local";
    case protocol::Source::native: return "native";
    case protocol::Source::none: break;
  }
  return "none";
}

}  // namespace vramd
