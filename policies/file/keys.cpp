#include "policies/file/keys.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace vramd::policy {
namespace {

using Words = std::string_view;

constexpr Words kModes[] = {"off", "observe", "pool", "full"};
constexpr Words kDomains[] = {"container", "cgroup", "uid"};
constexpr Words kIpc[] = {"domain", "uid"};
constexpr Words kScrub[] = {"always", "domain", "driver"};
constexpr Words kQuiet[] = {"never", "declared", "tracked"};
constexpr Words kNuma[] = {"local", "any"};
constexpr Words kAuto[] = {"auto"};
constexpr Words kPer[] = {"rule", "session", "user", "job", "cgroup", "container"};
constexpr Words kPriorities[] = {"batch", "normal", "interactive"};
constexpr Words kOnLimit[] = {"fail", "offload", "wait"};
constexpr Words kSteps[] = {"limbo", "cached", "daemon", "move_out", "wait"};
constexpr Words kReports[] = {"off", "short", "full"};
constexpr Words kLanguages[] = {"auto", "en", "zh"};
constexpr Words kModules[] = {"idle-session", "optimizer-state", "activation", "cold-chunk", "guard", "advisor"};
constexpr Words kPlacements[] = {"auto", "declared", "in-place"};
constexpr Words kDetections[] = {"auto", "tag", "off"};
constexpr Words kActivationActions[] = {"advise", "offload", "recompute", "auto"};

constexpr bool kLater = false;  // known, and not acted on by this version

constexpr Shape choice(std::span<const Words> words) { return {Form::choice, words}; }
constexpr Shape whole(std::uint64_t low, std::uint64_t high, std::span<const Words> words = {}) {
  return {Form::integer, words, low, high};
}
constexpr Shape inside(const KeyTable& keys) { return {Form::object, {}, 0, 0, &keys}; }

constexpr Key kPoolKeys[] = {
    {"retain", {Form::share}},
    {"headroom", {Form::share}},
    {"garbage_collection_threshold", {Form::ratio}, kLater},
    {"domain", choice(kDomains), kLater},
    {"ipc", choice(kIpc), kLater},
    {"scrub", choice(kScrub)},
};
constexpr KeyTable kPool{kPoolKeys};

constexpr Key kMoveKeys[] = {
    {"max_pause", {Form::duration}},
    {"max_drain", {Form::duration}},
    {"assume_quiet", choice(kQuiet)},
    {"max_bandwidth", {Form::size, kAuto}},
};
constexpr KeyTable kMoves{kMoveKeys};

constexpr Key kHostMemoryKeys[] = {
    {"limit", {Form::share}},         {"session_limit", {Form::share}}, {"pinned_limit", {Form::share}},
    {"min_available", {Form::share}}, {"numa", choice(kNuma)},
};
constexpr KeyTable kHostMemory{kHostMemoryKeys};

constexpr Key kStagingKeys[] = {
    {"enabled", {Form::choice, kAuto, 0, 0, nullptr, true}},
    {"slot_size", {Form::size, kAuto}},
    {"slots", whole(2, 64, kAuto)},
    {"threads", whole(1, 16, kAuto)},
    {"min_copy_size", {Form::size, kAuto}},
};
constexpr KeyTable kStaging{kStagingKeys};

constexpr Key kMatchKeys[] = {
    {"user", {Form::pattern}},   {"group", {Form::pattern}}, {"command", {Form::pattern}},  {"container", {Form::pattern}},
    {"cgroup", {Form::pattern}}, {"job", {Form::pattern}},   {"any", {Form::must_be_true}}, {"slurm_job", {Form::pattern}},
};
constexpr KeyTable kMatch{kMatchKeys};

constexpr Key kSessionKeys[] = {
    {"match", inside(kMatch), true, true},
    {"gpus", {Form::gpus}},
    {"limit", {Form::share}},
    {"reserve", {Form::share}},
    {"per", choice(kPer)},
    {"priority", choice(kPriorities)},
    {"on_limit", choice(kOnLimit), kLater},
    {"mode", choice(kModes), kLater},
};
constexpr KeyTable kSessions{kSessionKeys};

constexpr Key kOomKeys[] = {
    {"steps", {Form::choices, kSteps}}, {"wait", {Form::duration}},       {"report", choice(kReports)},
    {"snapshot", {Form::boolean}},      {"language", choice(kLanguages)},
};
constexpr KeyTable kOom{kOomKeys};

constexpr Key kMetricsKeys[] = {
    {"listen", {Form::listen}},
    {"sessions", {Form::boolean}, kLater},
    {"sessions_max", whole(1, 1024), kLater},
};
constexpr KeyTable kMetrics{kMetricsKeys};

constexpr Key kTopKeys[] = {
    {"$schema", {Form::any_text}},
    {"version", {Form::version}, true, true},
    {"mode", choice(kModes)},
    {"pool", inside(kPool)},
    {"sessions", {Form::rules, {}, 0, 0, &kSessions}},
    {"metrics", inside(kMetrics)},
    {"moves", inside(kMoves), kLater},
    {"host_memory", inside(kHostMemory), kLater},
    {"staging", inside(kStaging), kLater},
    {"policies", {Form::modules}, kLater},
    {"oom", inside(kOom), kLater},
};
constexpr KeyTable kTop{kTopKeys};

constexpr Key kModule{"module", choice(kModules), true, true};
constexpr Key kEnabled{"enabled", {Form::boolean}};

constexpr Key kIdleSessionKeys[] = {
    kModule, kEnabled, {"after", {Form::duration}}, {"eager", {Form::boolean}}, {"min_bytes", {Form::share}}};
constexpr Key kOptimizerStateKeys[] = {kModule,
                                       kEnabled,
                                       {"placement", choice(kPlacements)},
                                       {"ratio", {Form::ratio}},
                                       {"detect", choice(kDetections)},
                                       {"min_block", {Form::size}}};
constexpr Key kActivationKeys[] = {
    kModule, kEnabled, {"action", choice(kActivationActions)}, {"min_saved", {Form::size}}, {"max_slowdown", {Form::ratio}}};
constexpr Key kColdChunkKeys[] = {kModule,
                                  kEnabled,
                                  {"after", {Form::duration}},
                                  {"min_block", {Form::size}},
                                  {"high_watermark", {Form::ratio}},
                                  {"low_watermark", {Form::ratio}}};
constexpr Key kGuardKeys[] = {kModule,
                              kEnabled,
                              {"max_slowdown", {Form::ratio}},
                              {"min_residency_iterations", whole(1, 1000)},
                              {"pin_iterations", whole(1, 1000)}};
constexpr Key kAdvisorKeys[] = {kModule, kEnabled, {"interval", {Form::duration}}, {"language", choice(kLanguages)}};

// In the order of kModules.
constexpr KeyTable kModuleTables[] = {{kIdleSessionKeys}, {kOptimizerStateKeys}, {kActivationKeys},
                                      {kColdChunkKeys},   {kGuardKeys},          {kAdvisorKeys}};
static_assert(std::size(kModules) == std::size(kModuleTables));

struct Home {
  const KeyTable* table;
  std::string_view name;
};
constexpr Home kHomes[] = {{&kTop, ""},
                           {&kPool, "pool"},
                           {&kMoves, "moves"},
                           {&kStaging, "staging"},
                           {&kOom, "oom"},
                           {&kMetrics, "metrics"},
                           {&kMatch, "match"},
                           {&kSessions, "sessions[]"},
                           {&kHostMemory, "host_memory"}};

}  // namespace

const Key* KeyTable::find(std::string_view name) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

const KeyTable& top_level_keys() { return kTop; }

std::span<const std::string_view> module_names() { return kModules; }

const KeyTable* module_keys(std::string_view module) {
  const auto found = std::find(std::begin(kModules), std::end(kModules), module);
  return found == std::end(kModules) ? nullptr : &kModuleTables[found - std::begin(kModules)];
}

const std::string_view* home_of(std::string_view key) {
  for (const Home& home : kHomes)
    if (home.table->find(key) != nullptr) return &home.name;
  return nullptr;
}

}  // namespace vramd::policy
