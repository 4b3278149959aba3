// Command lines of the test programs: --name VALUE, --name=VALUE, --name, and one optional file name.
// A mistake prints what is wrong and the usage, and exits with kExitUsage.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/programs/cuda_check.hpp"

class Flags {
 public:
  explicit Flags(std::string program) : program_(std::move(program)) {}

  void number(const char* name, std::uint64_t& value, std::uint64_t low, std::uint64_t high, const char* help) {
    const std::string range = std::to_string(low) + " to " + (high == UINT64_MAX ? "" : std::to_string(high));
    add(name, "N", std::string(help) + " [" + std::to_string(value) + "]", [=, &value](const std::string& text) {
      char* end = nullptr;
      errno = 0;
      const std::uint64_t parsed = std::strtoull(text.c_str(), &end, 10);
      const bool digits = !text.empty() && text[0] >= '0' && text[0] <= '9' && *end == '\0';
      if (!digits || errno != 0 || parsed < low || parsed > high) return "a number from " + range;
      value = parsed;
      return std::string();
    });
  }

  // A positive factor.
  void real(const char* name, double& value, const char* help) {
    char shown[32];
    std::snprintf(shown, sizeof shown, " [%g]", value);
    add(name, "X", std::string(help) + shown, [&value](const std::string& text) {
      char* end = nullptr;
      const double parsed = std::strtod(text.c_str(), &end);
      if (text.empty() || *end != '\0' || !(parsed > 0 && parsed < 1e18)) return std::string("a number above 0");
      value = parsed;
      return std::string();
    });
  }

  void choice(const char* name, std::string& value, std::vector<std::string> choices, const char* help) {
    std::string list;
    for (const std::string& choice : choices) list += (list.empty() ? "" : "|") + choice;
    add(name, list, std::string(help) + " [" + value + "]", [=, &value](const std::string& text) {
      for (const std::string& choice : choices) {
        if (text != choice) continue;
        value = text;
        return std::string();
      }
      return "one of " + list;
    });
  }

  void flag(const char* name, bool& value, const char* help) {
    add(name, "", help, [&value](const std::string&) {
      value = true;
      return std::string();
    });
  }

  // What stands alone on the command line. Required.
  void file(const char* name, std::string& value) {
    file_name_ = name;
    file_ = &value;
  }

  void parse(int argc, char** argv) const {
    for (int i = 1; i < argc; ++i) {
      std::string word = argv[i];
      if (word == "-h" || word == "--help") {
        std::fputs(usage().c_str(), stdout);
        std::exit(0);
      }
      if (word.rfind("--", 0) != 0) {
        if (!file_ || !file_->empty()) fail("unexpected argument '" + word + "'");
        *file_ = word;
        continue;
      }
      std::string value;
      const std::size_t equals = word.find('=');
      if (equals != std::string::npos) {
        value = word.substr(equals + 1);
        word.resize(equals);
      }
      const Flag* flag = find(word);
      if (!flag) fail("unknown flag '" + word + "'");
      if (flag->operand.empty() && equals != std::string::npos) fail("'" + word + "' takes no value");
      if (!flag->operand.empty() && equals == std::string::npos) {
        if (++i == argc) fail("'" + word + "' needs a value");
        value = argv[i];
      }
      const std::string expected = flag->parse(value);
      if (!expected.empty()) fail("'" + value + "' for " + word + ": expected " + expected);
    }
    if (file_ && file_->empty()) fail("no " + file_name_ + " given");
  }

  [[noreturn]] void fail(const std::string& what) const {
    std::fprintf(stderr, "%s: %s\n%s", program_.c_str(), what.c_str(), usage().c_str());
    std::exit(kExitUsage);
  }

 private:
  struct Flag {
    std::string name, operand, help;
    std::function<std::string(const std::string&)> parse;  // returns what was expected instead, or nothing
  };

  void add(const char* name, std::string operand, std::string help, std::function<std::string(const std::string&)> parse) {
    flags_.push_back({std::string("--") + name, std::move(operand), std::move(help), std::move(parse)});
  }

  const Flag* find(const std::string& name) const {
    for (const Flag& flag : flags_) {
      if (flag.name == name) return &flag;
    }
    return nullptr;
  }

  std::string usage() const {
    std::string text = "usage: " + program_ + " [flags]" + (file_ ? " " + file_name_ : "") + "\n";
    for (const Flag& flag : flags_) {
      std::string left = "  " + flag.name + (flag.operand.empty() ? "" : " " + flag.operand);
      left.resize(left.size() < 32 ? 32 : left.size() + 1, ' ');
      text += left + flag.help + "\n";
    }
    return text;
  }

  std::string program_, file_name_;
  std::string* file_ = nullptr;
  std::vector<Flag> flags_;
};
