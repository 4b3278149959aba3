// Which keys a policy file knows, what may stand behind each, and which of them this version acts on.
// config/policy.schema.json says the same for editors; a test holds the two together.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace vramd::policy {

enum class Form : std::uint8_t {
  any_text,
  pattern,  // text that is not empty
  boolean,
  must_be_true,
  version,
  integer,  // low..high
  ratio,    // 0..1
  size,
  share,  // a size or a percentage
  duration,
  choice,   // one of `words`
  choices,  // a list of `words`
  listen,
  gpus,
  object,  // with `keys`
  rules,   // a list of objects with `keys`
  modules  // a list of objects whose keys depend on "module"
};

struct KeyTable;

struct Shape {
  Form form;
  std::span<const std::string_view> words{};  // choices; for other forms: words accepted besides, such as "auto"
  std::uint64_t low = 0, high = UINT64_MAX;
  const KeyTable* keys = nullptr;
  bool boolean_too = false;  // true and false are accepted besides
};

struct Key {
  std::string_view name;
  Shape shape;
  bool acted_on = true;
  bool required = false;
};

struct KeyTable {
  std::span<const Key> keys;

  const Key* find(std::string_view name) const;
};

const KeyTable& top_level_keys();

std::span<const std::string_view> module_names();
// The keys of a module's entry, or null when there is no such module.
const KeyTable* module_keys(std::string_view module);

// Where else a key lives: "pool" for "retain", "" for the top level. Null when nowhere.
const std::string_view* home_of(std::string_view key);

}  // namespace vramd::policy
