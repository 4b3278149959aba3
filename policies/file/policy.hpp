// A policy file, checked and turned into values. Units are resolved: bytes are bytes, percentages stay percentages until
// a device is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/protocol/messages.hpp"

namespace vramd::policy {

// A size as written: either bytes or a share of a device.
struct Amount {
  std::uint64_t bytes = 0;
  double percent = 0;  // 0..100, used when is_percent
  bool is_percent = false;

  std::uint64_t of(std::uint64_t total) const;  // rounds down
};

// When a chunk is cleared before somebody gets it: every time, when its memory may have been another domain's, or never, as the
// driver does it.
enum class Scrub : std::uint8_t { always, domain, driver };

enum class Per : std::uint8_t { session, user, job, cgroup, container, rule };

// Fields that are set must all match. Patterns are shell wildcards (* and ?).
struct Match {
  std::optional<std::string> user, group, command, container, cgroup, job;
  bool any = false;
};

struct SessionRule {
  Match match;
  std::optional<std::vector<int>> gpus;  // device indices of the daemon; none = all
  std::optional<Amount> limit;           // per device
  std::optional<Amount> reserve;
  Per per = Per::session;
  protocol::Priority priority = protocol::Priority::normal;
  int line = 0;  // in the file, for "which rule?" in vramctl status
};

struct Policy {
  protocol::Mode mode = protocol::Mode::pool;
  Amount pool_retain{0, 5, true};                // idle chunks the daemon keeps warm
  Amount pool_headroom{256ull << 20, 0, false};  // left to the driver and to processes without the shim
  Scrub pool_scrub = Scrub::domain;
  std::vector<SessionRule> sessions;  // first match wins
  std::string metrics_listen = "127.0.0.1:9845";
};

struct Diagnostic {
  enum class Severity : std::uint8_t { error, warning } severity = Severity::error;
  int line = 0, column = 0;  // 1-based
  std::string path;          // "sessions[0].limit"
  std::string what;
  std::string instead;  // what to write

  std::string text(const std::string& file) const;  // "file:line:col: error: path: what; what to write instead"
};

struct Parsed {
  std::optional<Policy> policy;  // empty when there is an error among the diagnostics
  std::vector<Diagnostic> diagnostics;
};

// Checks everything in one pass: syntax, unknown keys (with "did you mean"), duplicate keys, types, units, ranges.
// Keys of the schema that this version does not act on yet are accepted with a warning that says so.
Parsed parse(const std::string& text);
Parsed parse_file(const std::string& path);  // an unreadable file is a diagnostic too

// "12GiB", "512MiB", "1048576", "75%": the size syntax of policy files, VRAMD_LIMIT and vramctl. Empty on bad syntax.
std::optional<Amount> parse_amount(const std::string& text);

}  // namespace vramd::policy
