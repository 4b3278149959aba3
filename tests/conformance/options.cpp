#include "tests/conformance/options.hpp"

#include <cstdio>
#include <cstring>

namespace vramd::conformance {

const char kUsage[] =
    "usage: vramd_conformance [--list] [--json FILE] [--case NAME | --only PREFIX] [--device N] [--limit SECONDS]\n"
    "Asks the CUDA driver how it behaves, one case per process, and writes the answers as JSON.\n"
    "  --list           names, sources and expectations of all cases, nothing is run\n"
    "  --json FILE      where to write (default: stdout)\n"
    "  --case NAME      this case only\n"
    "  --only PREFIX    cases whose name begins with PREFIX\n"
    "  --device N       ordinal of the device (default: 0)\n"
    "  --limit SECONDS  time limit of each case (default: 20)\n"
    "Exit status: 0, or 1 when a documented case differs, crashes or times out, or 2 when nothing could be run.\n";

namespace {

// By hand: strtol of a new libc is a symbol that older ones lack.
bool number(const char* text, int low, int high, int& value) {
  long parsed = 0;
  if (*text == '\0') return false;
  for (; *text; ++text) {
    if (*text < '0' || *text > '9' || parsed > high) return false;
    parsed = parsed * 10 + (*text - '0');
  }
  value = static_cast<int>(parsed);
  return parsed >= low && parsed <= high;
}

bool wrong(const char* format, const char* what) {
  std::fputs("vramd_conformance: error: ", stderr);
  std::fprintf(stderr, format, what);
  std::fputs("; see vramd_conformance --help\n", stderr);
  return false;
}

}  // namespace

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const char* const flag = argv[i];
    const auto is = [&](const char* name) { return std::strcmp(flag, name) == 0; };
    if (is("-h") || is("--help")) {
      options.help = true;
      continue;
    }
    if (is("--list")) {
      options.list = true;
      continue;
    }
    const bool valued = is("--json") || is("--case") || is("--only") || is("--device") || is("--limit") || is("--child");
    if (!valued) return wrong("unknown argument '%s'", flag);
    if (++i == argc) return wrong("%s needs a value", flag);
    const char* const value = argv[i];
    bool valid = true;
    if (is("--json")) options.json = value;
    if (is("--case")) options.name = value;
    if (is("--only")) options.only = value;
    if (is("--device")) valid = number(value, 0, 1023, options.device);
    if (is("--limit")) valid = number(value, 1, 3600, options.limit_s);
    if (is("--child")) valid = number(value, 0, 1023, options.child_fd);
    if (!valid) return wrong("%s is not a number it takes", flag);
  }
  if (options.name && options.only) return wrong("%s and --only exclude each other", "--case");
  return true;
}

}  // namespace vramd::conformance
