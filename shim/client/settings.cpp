#include "shim/client/settings.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace vramd::shim {
namespace {

struct Unit {
  const char* name;
  std::uint64_t bytes;
};
constexpr Unit kUnits[] = {{"", 1},          {"B", 1},       {"KiB", 1 << 10}, {"MiB", 1 << 20},
                           {"GiB", 1 << 30}, {"k", 1 << 10}, {"m", 1 << 20},   {"g", 1 << 30},
                           {"K", 1 << 10},   {"M", 1 << 20}, {"G", 1 << 30},   {"TiB", 1ull << 40}};

// Digits with an optional fraction; false on anything else. strtod would obey the program's locale.
bool parse_number(const char*& text, std::uint64_t& whole, double& fraction) {
  if (*text < '0' || *text > '9') return false;
  whole = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    if (whole > UINT64_MAX / 10 - 1) return false;
    whole = whole * 10 + static_cast<std::uint64_t>(*text - '0');
  }
  fraction = 0;
  if (*text != '.') return true;
  double scale = 0.1;
  const char* digits = ++text;
  for (; *text >= '0' && *text <= '9'; ++text, scale /= 10) fraction += scale * (*text - '0');
  return text != digits;
}

bool parse_percent(const char* text, double& out) {
  std::uint64_t whole;
  double fraction;
  if (!parse_number(text, whole, fraction) || strcmp(text, "%") != 0) return false;
  out = static_cast<double>(whole) + fraction;
  return out > 0 && out <= 100;
}

template <class Value, std::size_t N>
void read_word(const char* variable, const char* const (&words)[N], const Value (&values)[N], const char* choices, Value& out) {
  const char* text = getenv(variable);
  if (text == nullptr || *text == '\0') return;
  for (std::size_t i = 0; i < N; ++i) {
    if (strcmp(text, words[i]) == 0) {
      out = values[i];
      return;
    }
  }
  log(LogLevel::warn, "%s=%.40s is not known and ignored; write one of: %s", variable, text, choices);
}

void read_limit(Settings& settings) {
  const char* variable = "VRAMD_LIMIT";
  const char* text = getenv(variable);
  if (text == nullptr || *text == '\0') text = getenv(variable = "CUDA_DEVICE_MEMORY_LIMIT");
  if (text == nullptr || *text == '\0') return;
  if (parse_percent(text, settings.limit_percent)) return;
  settings.limit_percent = 0;
  // The alias counts bytes where no unit is written; in our own variable that would be a slip.
  const bool has_unit = strspn(text, "0123456789.") != strlen(text);
  if ((has_unit || strcmp(variable, "VRAMD_LIMIT") != 0) && parse_size(text, settings.limit)) return;
  log(LogLevel::warn,
      "%s=%.40s is no size and ignored: there is no limit from the environment; write for example 12GiB, 512MiB or 75%%",
      variable, text);
}

void read_socket(Settings& settings) {
  const char* text = getenv("VRAMD_SOCKET");
  if (text != nullptr && *text != '\0') {
    if (strlen(text) < sizeof settings.socket) {
      strcpy(settings.socket, text);
      return;
    }
    log(LogLevel::warn, "VRAMD_SOCKET is longer than %zu bytes and ignored; use a shorter path", sizeof settings.socket - 1);
  }
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  snprintf(settings.socket, sizeof settings.socket, "/run/vramd/vramd.sock");
  if (access(settings.socket, F_OK) == 0 || runtime == nullptr || *runtime == '\0') return;
  char own[sizeof settings.socket];
  const int length = snprintf(own, sizeof own, "%s/vramd.sock", runtime);
  if (length > 0 && static_cast<std::size_t>(length) < sizeof own && access(own, F_OK) == 0) strcpy(settings.socket, own);
}

}  // namespace

bool parse_size(const char* text, Bytes& out) {
  std::uint64_t whole;
  double fraction;
  if (!parse_number(text, whole, fraction)) return false;
  for (const Unit& unit : kUnits) {
    if (strcmp(text, unit.name) != 0) continue;
    if (whole > UINT64_MAX / unit.bytes / 2) return false;
    out = {whole * unit.bytes + static_cast<std::uint64_t>(fraction * static_cast<double>(unit.bytes))};
    return out > Bytes{0};
  }
  return false;
}

Bytes Settings::limit_of(Bytes device_total) const {
  if (limit_percent > 0) return {static_cast<std::uint64_t>(static_cast<double>(device_total.value) / 100 * limit_percent)};
  return limit;
}

Settings read_settings() {
  using protocol::Mode;
  using protocol::Priority;
  Settings settings;
  static const char* const kLevels[] = {"off", "error", "warn", "warning", "info", "debug"};
  static const LogLevel kLevelValues[] = {LogLevel::off,  LogLevel::error, LogLevel::warn,
                                          LogLevel::warn, LogLevel::info,  LogLevel::debug};
  read_word("VRAMD_LOG", kLevels, kLevelValues, "off, error, warn, info, debug", settings.log);
  set_log_level(settings.log);
  static const char* const kModes[] = {"off", "observe", "pool", "full"};
  static const Mode kModeValues[] = {Mode::off, Mode::observe, Mode::pool, Mode::full};
  read_word("VRAMD_MODE", kModes, kModeValues, "off, observe, pool", settings.mode);
  if (settings.mode == Mode::full) {
    log(LogLevel::warn, "VRAMD_MODE=full is not built yet: mode pool");
    settings.mode = Mode::pool;
  }
  static const char* const kPriorities[] = {"batch", "normal", "interactive"};
  static const Priority kPriorityValues[] = {Priority::batch, Priority::normal, Priority::interactive};
  read_word("VRAMD_PRIORITY", kPriorities, kPriorityValues, "batch, normal, interactive", settings.priority);
  read_limit(settings);
  read_socket(settings);
  if (const char* job = getenv("VRAMD_JOB")) {
    const int length = snprintf(settings.job, sizeof settings.job, "%s", job);
    if (length >= static_cast<int>(sizeof settings.job))
      log(LogLevel::warn, "VRAMD_JOB is cut to %zu bytes", sizeof settings.job - 1);
  }
  return settings;
}

}  // namespace vramd::shim
