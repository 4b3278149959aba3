#include "policies/file/check.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "policies/file/keys.hpp"
#include "policies/file/text.hpp"
#include "policies/file/values.hpp"

namespace vramd::policy {
namespace {

std::string name_of(const Node& node) {
  switch (node.kind) {
    case Kind::null: return "null";
    case Kind::boolean: return node.boolean ? "true" : "false";
    case Kind::integer:
    case Kind::real: return printable(node.text);
    case Kind::string: return in_quotes(node.text);
    case Kind::array: return "a list";
    case Kind::object: return "an object";
  }
  return "?";
}

bool is_number(const Node& node) { return node.kind == Kind::integer || node.kind == Kind::real; }

bool is_word_of(const Node& node, std::span<const std::string_view> words) {
  return node.kind == Kind::string && std::find(words.begin(), words.end(), node.text) != words.end();
}

bool exceeds(const Node& number, std::uint64_t most) {
  return number.kind == Kind::integer ? number.magnitude > most : number.real > static_cast<double>(most);
}

// A real number that is whole: 1e9, 2.0. Empty when it is not or does not fit.
std::string written_out(const Node& node) {
  if (node.kind != Kind::real || node.real < 0 || node.real >= 1e18) return {};
  const auto whole = static_cast<std::uint64_t>(node.real);
  return static_cast<double>(whole) == node.real ? std::to_string(whole) : std::string{};
}

// The shortest way to write a double.
std::string shortest(double value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, result.ptr};
}

std::string below(const std::string& path, std::string_view key) {
  return path.empty() ? printable(key) : path + '.' + printable(key);
}

std::string item_of(const std::string& path, std::size_t index) { return path + '[' + std::to_string(index) + ']'; }

// What to write instead of keys that other programs have for the same purpose.
std::string_view translation(std::string_view key) {
  if (key == "offload_optimizer") return "write {\"module\": \"optimizer-state\"} in \"policies\"";
  if (key == "activation_checkpointing") return "write {\"module\": \"activation\"} in \"policies\"";
  if (key == "offload_param") return "vramd has no counterpart of it";
  return {};
}

class Checker {
 public:
  Checker(bool complete, Findings& findings) : complete_(complete), findings_(findings) {}

  void object(const Node& node, const KeyTable& table, const std::string& path) {
    if (node.kind != Kind::object) return wrong_type(node, path, "an object { ... }", "write {\"key\": value}");
    for (const Member& member : node.members) {
      const std::string member_path = below(path, member.key);
      const Key* key = table.find(member.key);
      if (key == nullptr) {
        unknown_key(member, table, path);
        continue;
      }
      const bool warns = !key->acted_on && !silent_;
      if (warns) findings_.warning(member.at, member_path, "not acted on by this version", "it is only checked");
      silent_ = silent_ || warns;
      value(member.value, *key, member_path);
      if (warns) silent_ = false;
    }
    if (!complete_) return;
    for (const Key& key : table.keys) {
      if (key.required && node.find(key.name) == nullptr)
        findings_.error(node.at, below(path, key.name), "missing", example_of(key.name));
    }
  }

 private:
  static std::string example_of(std::string_view key) {
    if (key == "version") return "write \"version\": 1";
    if (key == "match") return "say which sessions, such as {\"user\": \"alice\"} or {\"any\": true}";
    return "write \"module\": " + one_of(module_names());
  }

  void wrong_type(const Node& node, const std::string& path, std::string_view wanted, std::string instead) {
    findings_.error(node.at, path, name_of(node) + " is not " + std::string(wanted), std::move(instead));
  }

  void unknown_key(const Member& member, const KeyTable& table, const std::string& path) {
    const std::string what = "unknown key " + in_quotes(member.key);
    const std::string member_path = below(path, member.key);
    if (const std::string_view other = translation(member.key); !other.empty())
      return findings_.error(member.at, member_path, what, std::string(other));
    if (const std::string_view* home = home_of(member.key); home != nullptr) {
      return findings_.error(
          member.at, member_path, what + (path.empty() ? " at the top level" : " in " + path),
          home->empty() ? "it is a top-level key: move it there" : "it belongs in " + in_quotes(*home) + ": move it there");
    }
    std::vector<std::string_view> names;
    for (const Key& key : table.keys) names.push_back(key.name);
    if (const std::string_view meant = nearest(member.key, names); !meant.empty())
      return findings_.error(member.at, member_path, what, "did you mean " + in_quotes(meant) + '?');
    findings_.error(member.at, member_path, what, "keys here are " + one_of(names));
  }

  void value(const Node& node, const Key& key, const std::string& path) {
    const Shape& shape = key.shape;
    switch (shape.form) {
      case Form::any_text:
        if (node.kind != Kind::string) wrong_type(node, path, "text", "write it in double quotes");
        return;
      case Form::pattern: return pattern(node, path);
      case Form::boolean:
        if (node.kind != Kind::boolean) wrong_type(node, path, "true or false", "write true or false without quotes");
        return;
      case Form::must_be_true:
        if (node.kind != Kind::boolean || !node.boolean)
          findings_.error(node.at, path, name_of(node) + " says nothing here", "write true, or leave the key out");
        return;
      case Form::version:
        if (node.kind != Kind::integer || node.negative || node.magnitude != 1)
          findings_.error(node.at, path, name_of(node) + " is no version that this program knows", "write 1");
        return;
      case Form::integer: return integer(node, shape, path);
      case Form::ratio: return ratio(node, path);
      case Form::size:
      case Form::share: return amount(node, key, path);
      case Form::duration: return duration(node, path);
      case Form::choice: return choice(node, shape, path);
      case Form::choices: return choices(node, shape, path);
      case Form::listen: return listen(node, path);
      case Form::gpus: return gpus(node, path);
      case Form::object: return object(node, *shape.keys, path);
      case Form::rules: return rules(node, *shape.keys, path);
      case Form::modules: return modules(node, path);
    }
  }

  void pattern(const Node& node, const std::string& path) {
    if (node.kind != Kind::string) {
      return wrong_type(node, path, "text",
                        is_number(node) ? "write it in double quotes: \"" + printable(node.text) + '"'
                                        : "write a name, or a pattern with * and ?");
    }
    if (node.text.empty())
      findings_.error(node.at, path, "empty, so it matches nothing", "write a name, a pattern, or leave the key out");
  }

  void integer(const Node& node, const Shape& shape, const std::string& path) {
    if (is_word_of(node, shape.words)) return;
    const std::string range = std::to_string(shape.low) + " to " + std::to_string(shape.high);
    const std::string instead = "write a whole number from " + range + (shape.words.empty() ? "" : " or \"auto\"");
    if (node.kind == Kind::real && !written_out(node).empty()) {
      findings_.error(node.at, path, name_of(node) + " is not written as a whole number", "write " + written_out(node));
    } else if (node.kind != Kind::integer) {
      wrong_type(node, path, "a whole number", instead);
    } else if (node.negative || node.magnitude < shape.low || node.magnitude > shape.high) {
      findings_.error(node.at, path, name_of(node) + " is outside " + range, instead);
    }
  }

  void ratio(const Node& node, const std::string& path) {
    if (!is_number(node)) return wrong_type(node, path, "a number", "write a number from 0 to 1 such as 0.9");
    if (node.real >= 0 && node.real <= 1) return;
    const bool percent = node.real > 1 && node.real <= 100;
    findings_.error(node.at, path, name_of(node) + " is outside 0 to 1",
                    percent ? "write " + shortest(node.real / 100) : "write a number from 0 to 1 such as 0.9");
  }

  void amount(const Node& node, const Key& key, const std::string& path) {
    const bool share = key.shape.form == Form::share;
    if (is_word_of(node, key.shape.words)) return;
    std::string instead =
        share ? "write a size such as \"12GiB\" or a percentage such as \"75%\"" : "write a size such as \"64MiB\"";
    if (node.kind == Kind::string) {
      const Checked<Amount> checked = check_amount(node.text);
      if (!checked) {
        findings_.error(node.at, path, checked.error().what, checked.error().instead);
      } else if (checked->is_percent && !share) {
        findings_.error(node.at, path, in_quotes(node.text) + " is a percentage, of nothing in particular", instead);
      }
      return;
    }
    if (!is_number(node)) return wrong_type(node, path, share ? "a size or a percentage" : "a size", instead);
    if (node.real < 0) {
      const bool optional = key.name == "limit" || key.name == "reserve";
      if (optional) instead += ", or leave " + in_quotes(key.name) + " out for none";
      findings_.error(node.at, path, name_of(node) + " is negative", instead);
    } else if (exceeds(node, kMaxBytes)) {
      findings_.error(node.at, path, name_of(node) + " is more than 1 EiB", instead);
    } else if (node.kind == Kind::real) {
      const std::string digits = written_out(node);
      findings_.error(node.at, path, name_of(node) + " is not written as a whole number of bytes",
                      digits.empty() ? instead : "write " + digits);
    }
  }

  void duration(const Node& node, const std::string& path) {
    if (is_number(node) && node.real >= 0)
      return findings_.error(node.at, path, name_of(node) + " has no unit of time",
                             "write \"" + printable(node.text) + "s\" for seconds");
    if (is_number(node)) return findings_.error(node.at, path, name_of(node) + " is negative", "write a time such as \"5s\"");
    if (node.kind != Kind::string) return wrong_type(node, path, "a time", "write a time such as \"5s\"");
    const auto checked = check_duration(node.text);
    if (!checked) findings_.error(node.at, path, checked.error().what, checked.error().instead);
  }

  void choice(const Node& node, const Shape& shape, const std::string& path) {
    if (is_word_of(node, shape.words)) return;
    if (shape.boolean_too && node.kind == Kind::boolean) return;
    std::string instead = "write " + one_of(shape.words);
    if (shape.boolean_too) instead += ", true or false";
    if (node.kind == Kind::string) {
      if (const std::string_view meant = nearest(node.text, shape.words); !meant.empty())
        instead = "did you mean " + in_quotes(meant) + '?';
    }
    findings_.error(node.at, path, name_of(node) + " is not known here", std::move(instead));
  }

  void choices(const Node& node, const Shape& shape, const std::string& path) {
    if (node.kind != Kind::array) return wrong_type(node, path, "a list [ ... ]", "write a list of " + one_of(shape.words));
    for (std::size_t i = 0; i < node.items.size(); ++i) choice(node.items[i], shape, item_of(path, i));
  }

  void listen(const Node& node, const std::string& path) {
    constexpr const char* kExample = "write \"127.0.0.1:9845\", or \"off\"";
    if (node.kind != Kind::string) return wrong_type(node, path, "an address", kExample);
    const auto checked = check_listen(node.text);
    if (!checked) findings_.error(node.at, path, checked.error().what, checked.error().instead);
  }

  void gpus(const Node& node, const std::string& path) {
    constexpr const char* kExample = "write a list of indices such as [0, 1]";
    constexpr std::uint64_t kLastIndex = protocol::kMaxDevices - 1;
    if (node.kind != Kind::array) return wrong_type(node, path, "a list [ ... ]", kExample);
    if (node.items.empty())
      return findings_.error(node.at, path, "empty, so the rule is about no GPU", "leave the key out for all GPUs");
    std::set<std::uint64_t> seen;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const Node& item = node.items[i];
      const std::string item_path = item_of(path, i);
      if (item.kind == Kind::string) {
        findings_.error(item.at, item_path, name_of(item) + ": this version knows GPUs by index only",
                        "write the index that vramctl status shows");
      } else if (item.kind != Kind::integer || item.negative || item.magnitude > kLastIndex) {
        findings_.error(item.at, item_path, name_of(item) + " is no index of a GPU",
                        "write a whole number from 0 to " + std::to_string(kLastIndex));
      } else if (!seen.insert(item.magnitude).second) {
        findings_.error(item.at, item_path, name_of(item) + " is listed twice", "keep one");
      }
    }
  }

  void rules(const Node& node, const KeyTable& table, const std::string& path) {
    if (node.kind != Kind::array) return wrong_type(node, path, "a list [ ... ]", "write a list of rules, even for one");
    for (std::size_t i = 0; i < node.items.size(); ++i) object(node.items[i], table, item_of(path, i));
  }

  void modules(const Node& node, const std::string& path) {
    if (node.kind != Kind::array)
      return wrong_type(node, path, "a list [ ... ]", "write a list such as [{\"module\": \"idle-session\"}]");
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const Node& item = node.items[i];
      const std::string item_path = item_of(path, i);
      const Node* name = item.find("module");
      const KeyTable* table = name != nullptr && name->kind == Kind::string ? module_keys(name->text) : nullptr;
      if (item.kind != Kind::object) {
        wrong_type(item, item_path, "an object { ... }", "write {\"module\": \"idle-session\"}");
      } else if (table != nullptr) {
        object(item, *table, item_path);
      } else if (name != nullptr) {
        choice(*name, {Form::choice, module_names()}, below(item_path, "module"));
      } else if (complete_) {
        findings_.error(item.at, below(item_path, "module"), "missing", example_of("module"));
      }
    }
  }

  bool complete_;
  Findings& findings_;
  bool silent_ = false;  // inside something that this version does not act on: one warning is enough
};

}  // namespace

void check_keys(const Node& root, bool complete, Findings& findings) {
  Checker(complete, findings).object(root, top_level_keys(), "");
}

}  // namespace vramd::policy
