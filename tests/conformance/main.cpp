// Driver-behaviour cases, on a real or a simulated GPU. See README.md.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/conformance/child.hpp"
#include "tests/conformance/memory.hpp"
#include "tests/conformance/options.hpp"

namespace vramd::conformance {
namespace {

constexpr int kFormat = 1;
constexpr Case kIdentity{"identity", "", Source::documented, [](int) {
                           int version = 0;
                           char name[128] = "";
                           start();
                           NEED(cuDriverGetVersion(&version));
                           NEED(cuDeviceGetName(name, sizeof name, chosen_device));
                           observe("%d %s", version, name);
                         }};

void print_text(FILE* out, const char* text) {
  std::fputc('"', out);
  for (; *text; ++text) {
    const unsigned char c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\') std::fputc('\\', out);
    if (c < 0x20) {
      std::fprintf(out, "\\u%04x", c);
    } else {
      std::fputc(c, out);
    }
  }
  std::fputc('"', out);
}

void print_field(FILE* out, const char* name, const char* text) {
  std::fprintf(out, "\"%s\": ", name);
  print_text(out, text);
  std::fputs(", ", out);
}

bool chosen(const Case& c, const Options& options) {
  if (options.name) return std::strcmp(c.name, options.name) == 0;
  return !options.only || std::strncmp(c.name, options.only, std::strlen(options.only)) == 0;
}

template <class F>
int for_chosen(const Options& options, F f) {
  int count = 0;
  for (std::size_t i = 0; i < kListCount; ++i) {
    for (std::size_t j = 0; j < kLists[i]->count; ++j) {
      if (!chosen(kLists[i]->cases[j], options)) continue;
      ++count;
      f(kLists[i]->cases[j]);
    }
  }
  return count;
}

int fail(const char* what, const char* why) {
  std::fprintf(stderr, "vramd_conformance: error: %s: %s\n", what, why);
  return 2;
}

int run(const Options& options) {
  static Verdict verdict;
  run_child(kIdentity.name, options.device, options.limit_s, verdict);
  if (verdict.outcome != Outcome::as_expected) return fail("the driver cannot be asked for its name", verdict.observed);
  FILE* const out = options.json ? std::fopen(options.json, "w") : stdout;
  if (!out) return fail(options.json, "cannot be written");

  char* const name = std::strchr(verdict.observed, ' ');
  if (name) *name = '\0';
  std::fprintf(out, "{\"format\": %d, \"driver_version\": %s, ", kFormat, verdict.observed);
  print_field(out, "device_name", name ? name + 1 : "");
  std::fputs("\"cases\": [", out);
  int counts[5] = {};
  bool bad = false, first = true;
  const int total = for_chosen(options, [&](const Case& c) {
    run_child(c.name, options.device, options.limit_s, verdict);
    std::fputs(first ? "\n  {" : ",\n  {", out);
    first = false;
    print_field(out, "name", c.name);
    print_field(out, "source", to_text(c.source));
    print_field(out, "expectation", c.expectation);
    print_field(out, "outcome", to_text(verdict.outcome));
    print_field(out, "observed", verdict.observed);
    std::fprintf(out, "\"ns\": %lld}", static_cast<long long>(verdict.nanos));
    ++counts[static_cast<int>(verdict.outcome)];
    const bool good = verdict.outcome == Outcome::as_expected || verdict.outcome == Outcome::not_available;
    if (good) return;
    bad |= c.source == Source::documented;
    std::fprintf(stderr, "%s: %s (%s: %s): %s\n", to_text(verdict.outcome), c.name, to_text(c.source), c.expectation,
                 verdict.observed);
  });
  std::fputs("\n]}\n", out);
  bool written = std::fflush(out) == 0 && !std::ferror(out);
  if (out != stdout) written &= std::fclose(out) == 0;
  if (!written) return fail(options.json ? options.json : "stdout", "cannot be written");
  std::fprintf(stderr, "%d cases:", total);
  for (int i = 0; i < 5; ++i) std::fprintf(stderr, " %d %s%s", counts[i], to_text(static_cast<Outcome>(i)), i < 4 ? "," : "\n");
  return bad ? 1 : 0;
}

}  // namespace
}  // namespace vramd::conformance

int main(int argc, char** argv) {
  using namespace vramd::conformance;
  Options options;
  if (!parse(argc, argv, options)) return 2;
  if (options.help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (options.child_fd >= 0) {
    chosen_device = options.device;
    const bool identity = options.name && std::strcmp(options.name, kIdentity.name) == 0;
    const Case* const c = identity ? &kIdentity : options.name ? find_case(options.name) : nullptr;
    if (!c) return fail("--child", "needs the name of a case");
    judge(*c, options.child_fd);
  }
  const auto print = [](const Case& c) { std::printf("%-52s %-10s %s\n", c.name, to_text(c.source), c.expectation); };
  const auto nothing = [](const Case&) {};
  const int count = options.list ? for_chosen(options, print) : for_chosen(options, nothing);
  if (count == 0) return fail(options.name ? options.name : options.only, "no such case; --list shows all");
  return options.list ? 0 : run(options);
}
