#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "policies/file/text.hpp"
#include "policies/file/values.hpp"
#include "tools/vramctl/checks.hpp"

namespace vramd::ctl {
namespace {

using policy::in_quotes;

constexpr const char* kPreload = "LD_PRELOAD";
constexpr std::string_view kModes[] = {"off", "observe", "pool"};
constexpr std::string_view kPriorities[] = {"batch", "normal", "interactive"};

// Libraries of other projects that answer the same driver calls; only one can.
constexpr std::string_view kRivals[] = {"libvgpu.so", "libnvshare.so"};

const char* set(const Lookup& environment, const char* name) {
  const char* value = environment(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

CheckResult preload_result(const char* list) {
  if (list == nullptr) return ok(kPreload, "not set; vramctl run sets it for one program");
  std::string_view rest = list;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(": "), rest.size());
    const std::string entry(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    std::error_code error;
    if (entry.find('/') != std::string::npos && !std::filesystem::exists(entry, error))
      return finding(kPreload, "names " + in_quotes(entry) + ", which is not there", "unset LD_PRELOAD, or correct it");
    const bool rival = std::any_of(std::begin(kRivals), std::end(kRivals),
                                   [&](std::string_view name) { return entry.find(name) != std::string::npos; });
    if (rival) return finding(kPreload, in_quotes(entry) + " answers the same driver calls as vramd", "use one of the two");
  }
  const bool ours = std::string_view(list).find("libvramd.so") != std::string_view::npos;
  return ok(kPreload,
            ours ? "set here, so every program started here uses vramd" : "set to other libraries; vramctl run keeps them");
}

// `words`: what the variable may be.
void check_word(const Lookup& environment, const char* name, std::span<const std::string_view> words, Results& results) {
  const char* value = set(environment, name);
  if (value == nullptr) return;
  if (std::find(words.begin(), words.end(), value) != words.end()) {
    results.push_back(ok(name, value));
  } else {
    results.push_back(finding(name, in_quotes(value) + " is not known and ignored", "write " + policy::one_of(words)));
  }
}

void check_limit(const Lookup& environment, Results& results) {
  const char* value = set(environment, "VRAMD_LIMIT");
  if (value == nullptr) return;
  const auto amount = policy::check_amount(value);
  results.push_back(amount ? ok("VRAMD_LIMIT", value) : finding("VRAMD_LIMIT", amount.error().what, amount.error().instead));
}

}  // namespace

void check_environment(const Lookup& environment, Results& results) {
  results.push_back(preload_result(set(environment, kPreload)));
  if (const char* injection = set(environment, "CUDA_INJECTION64_PATH")) {
    results.push_back(finding("CUDA_INJECTION64_PATH",
                              in_quotes(injection) + " is a tool that hooks the driver; vramd stays passive beside it",
                              "unset it unless you profile or debug"));
  } else {
    results.push_back(ok("CUDA_INJECTION64_PATH", "not set"));
  }
  if (const char* disabled = set(environment, "VRAMD_DISABLE"); disabled != nullptr && std::strcmp(disabled, "0") != 0)
    results.push_back(
        finding("VRAMD_DISABLE", "is " + in_quotes(disabled) + ", so vramd does nothing in programs started here", "unset it"));
  if (const char* mode = set(environment, "VRAMD_MODE"); mode != nullptr && std::strcmp(mode, "full") == 0) {
    results.push_back(finding("VRAMD_MODE", "full is not built yet and works like pool", "write \"pool\""));
  } else {
    check_word(environment, "VRAMD_MODE", kModes, results);
  }
  check_word(environment, "VRAMD_PRIORITY", kPriorities, results);
  check_limit(environment, results);
}

}  // namespace vramd::ctl
