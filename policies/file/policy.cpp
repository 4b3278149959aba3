// From a checked document to a Policy, and the checks that look at more than one key.
#include "policies/file/policy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "allocator/base/unique_fd.hpp"
#include "policies/file/check.hpp"
#include "policies/file/document.hpp"
#include "policies/file/findings.hpp"
#include "policies/file/text.hpp"
#include "policies/file/values.hpp"

namespace vramd::policy {
namespace {

// The readers below return nothing for a value that check_keys() has reported, so that the rest can still be
// looked at.

const Node* find(const Node* node, std::string_view key) { return node == nullptr ? nullptr : node->find(key); }

std::optional<std::string> text_of(const Node* node) {
  if (node == nullptr || node->kind != Kind::string || node->text.empty()) return std::nullopt;
  return node->text;
}

std::optional<Amount> amount_of(const Node* node) {
  if (node == nullptr) return std::nullopt;
  if (node->kind == Kind::string) return parse_amount(node->text);
  if (node->kind != Kind::integer || node->negative || node->magnitude > kMaxBytes) return std::nullopt;
  return Amount{node->magnitude, 0, false};
}

template <class E>
struct Word {
  std::string_view word;
  E value;
};

template <class E, std::size_t N>
std::optional<E> word_of(const Node* node, const Word<E> (&words)[N]) {
  if (node == nullptr || node->kind != Kind::string) return std::nullopt;
  for (const Word<E>& word : words)
    if (word.word == node->text) return word.value;
  return std::nullopt;
}

constexpr Word<protocol::Mode> kModes[] = {{"off", protocol::Mode::off},
                                           {"observe", protocol::Mode::observe},
                                           {"pool", protocol::Mode::pool},
                                           {"full", protocol::Mode::full}};
constexpr Word<protocol::Priority> kPriorities[] = {{"batch", protocol::Priority::batch},
                                                    {"normal", protocol::Priority::normal},
                                                    {"interactive", protocol::Priority::interactive}};
constexpr Word<Scrub> kScrubs[] = {{"always", Scrub::always}, {"domain", Scrub::domain}, {"driver", Scrub::driver}};
constexpr Word<Per> kPer[] = {{"session", Per::session}, {"user", Per::user},           {"job", Per::job},
                              {"cgroup", Per::cgroup},   {"container", Per::container}, {"rule", Per::rule}};

std::optional<std::vector<int>> gpus_of(const Node* node) {
  if (node == nullptr || node->kind != Kind::array) return std::nullopt;
  std::vector<int> gpus;
  for (const Node& item : node->items)
    if (item.kind == Kind::integer && item.magnitude < protocol::kMaxDevices) gpus.push_back(static_cast<int>(item.magnitude));
  return gpus;
}

Match match_of(const Node* node) {
  Match match;
  match.user = text_of(find(node, "user"));
  match.group = text_of(find(node, "group"));
  match.command = text_of(find(node, "command"));
  match.container = text_of(find(node, "container"));
  match.cgroup = text_of(find(node, "cgroup"));
  match.job = text_of(find(node, "job"));
  const Node* any = find(node, "any");
  // "any" beside other fields adds nothing: the others still have to match.
  match.any = any != nullptr && any->kind == Kind::boolean && any->boolean && node->members.size() == 1;
  return match;
}

class Reader {
 public:
  Reader(bool complete, Findings& findings) : complete_(complete), findings_(findings) {}

  Policy read(const Node& root) {
    Policy policy;
    if (const auto mode = word_of(root.find("mode"), kModes)) policy.mode = *mode;
    if (policy.mode == protocol::Mode::full) {
      findings_.warning(root.find("mode")->at, "mode", "this version does not move live blocks, so full works like pool",
                        "write \"pool\"");
    }
    const Node* pool = root.find("pool");
    if (const auto retain = amount_of(find(pool, "retain"))) policy.pool_retain = *retain;
    if (const auto headroom = amount_of(find(pool, "headroom"))) policy.pool_headroom = *headroom;
    if (const auto scrub = word_of(find(pool, "scrub"), kScrubs)) policy.pool_scrub = *scrub;
    if (const auto listen = text_of(find(root.find("metrics"), "listen"))) policy.metrics_listen = *listen;
    const Node* sessions = root.find("sessions");
    if (sessions == nullptr || sessions->kind != Kind::array) return policy;
    for (std::size_t i = 0; i < sessions->items.size(); ++i) read_rule(sessions->items[i], i, policy);
    return policy;
  }

 private:
  void read_rule(const Node& node, std::size_t index, Policy& policy) {
    if (node.kind != Kind::object) return;
    const std::string path = "sessions[" + std::to_string(index) + "]";
    SessionRule rule;
    rule.line = node.at.line;
    rule.gpus = gpus_of(node.find("gpus"));
    rule.limit = amount_of(node.find("limit"));
    rule.reserve = amount_of(node.find("reserve"));
    if (const auto per = word_of(node.find("per"), kPer)) rule.per = *per;
    if (const auto priority = word_of(node.find("priority"), kPriorities)) rule.priority = *priority;
    const Node* match = node.find("match");
    rule.match = match_of(match);

    check_match(match, path + ".match");
    check_amounts(node, rule, path);
    check_reachable(node, rule, path);
    // A rule whose condition this version cannot see must not apply to everybody.
    if (find(match, "slurm_job") == nullptr) policy.sessions.push_back(std::move(rule));
  }

  void check_match(const Node* match, const std::string& path) {
    if (match == nullptr || match->kind != Kind::object) return;
    if (match->members.empty() && complete_) {
      findings_.error(match->at, path, "empty, so it is not clear which sessions are meant",
                      "write {\"any\": true} for all, or a field such as {\"user\": \"alice\"}");
    }
    if (match->find("any") != nullptr && match->members.size() > 1)
      findings_.warning(match->find("any")->at, path + ".any", "adds nothing beside other fields", "leave it out");
    if (const Node* job = match->find("slurm_job")) {
      findings_.warning(job->at, path + ".slurm_job", "a rule with this key matches no session in this version",
                        "match by \"job\" (VRAMD_JOB) or by \"cgroup\"");
    }
  }

  void check_amounts(const Node& node, const SessionRule& rule, const std::string& path) {
    if (rule.limit && rule.limit->bytes == 0 && rule.limit->percent == 0) {
      findings_.warning(node.find("limit")->at, path + ".limit", "0 refuses every allocation of these sessions",
                        "leave \"limit\" out for no limit");
    }
    if (!rule.limit || !rule.reserve || rule.limit->is_percent != rule.reserve->is_percent) return;
    const bool larger =
        rule.limit->is_percent ? rule.reserve->percent > rule.limit->percent : rule.reserve->bytes > rule.limit->bytes;
    if (larger)
      findings_.error(node.find("reserve")->at, path + ".reserve", "more than the limit of the same rule",
                      "write at most the limit");
  }

  // The first match wins, so nothing reaches a rule whose GPUs have met {"any": true} before.
  void check_reachable(const Node& node, const SessionRule& rule, const std::string& path) {
    const auto taken = [&](int gpu) { return taken_gpus_.contains(gpu); };
    const bool reached =
        !all_taken_ && !(rule.gpus && !rule.gpus->empty() && std::all_of(rule.gpus->begin(), rule.gpus->end(), taken));
    if (!reached) {
      findings_.error(node.at, path,
                      "never reached, because the rule in line " + std::to_string(taken_line_) + " matches every session",
                      "put {\"any\": true} last");
      return;
    }
    if (!rule.match.any) return;
    taken_line_ = rule.line;
    if (!rule.gpus) {
      all_taken_ = true;
    } else {
      taken_gpus_.insert(rule.gpus->begin(), rule.gpus->end());
    }
  }

  bool complete_;  // false: the end of the document is missing
  Findings& findings_;
  bool all_taken_ = false;
  std::set<int> taken_gpus_;
  int taken_line_ = 0;
};

Parsed unreadable(std::string what, std::string instead) {
  Findings findings;
  findings.error({}, "", std::move(what), std::move(instead));
  return {std::nullopt, findings.take()};
}

}  // namespace

Parsed parse(const std::string& text) {
  Findings findings;
  const Document document = read_document(text);
  for (const TextProblem& problem : document.problems) findings.error(problem.at, problem.path, problem.what, problem.instead);
  Policy policy;
  const bool something = document.complete || document.root.kind == Kind::object;
  if (something) {
    check_keys(document.root, document.complete, findings);
    policy = Reader(document.complete, findings).read(document.root);
  }
  Parsed parsed;
  if (!findings.has_error()) parsed.policy = std::move(policy);
  parsed.diagnostics = findings.take();
  return parsed;
}

Parsed parse_file(const std::string& path) {
  // Not blocking: a FIFO without a writer must not stop the daemon.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    const int why = errno;
    return unreadable(std::string("cannot be opened: ") + std::strerror(why),
                      why == ENOENT ? "check the path" : "check the permissions");
  }
  struct stat about {};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode))
    return unreadable("not a regular file", "name a file that holds JSON text");
  std::string text;
  char buffer[16384];
  // One byte more than allowed is enough for parse() to say that the file is too large.
  while (text.size() <= kMaxFileBytes) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(std::string("cannot be read: ") + std::strerror(errno), "check the file system");
    if (got == 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return parse(text);
}

}  // namespace vramd::policy
