// Comparing names without the C library. Our dlsym is called by libraries that take over its functions (sanitizers, tracers)
// and look the genuine ones up first: until they have them, strcmp() is a jump to nowhere, or leads back here.
#pragma once

namespace vramd::shim::hook {

// What is left of `text` after `prefix`, or nullptr if it begins otherwise.
inline const char* after(const char* text, const char* prefix) {
  for (; *prefix != '\0'; ++text, ++prefix) {
    if (*text != *prefix) return nullptr;
  }
  return text;
}

inline bool starts_with(const char* text, const char* prefix) { return after(text, prefix) != nullptr; }

inline bool same_text(const char* a, const char* b) {
  const char* rest = after(a, b);
  return rest != nullptr && *rest == '\0';
}

inline const char* file_name_of(const char* path) {
  const char* name = path;
  for (; *path != '\0'; ++path) {
    if (*path == '/') name = path + 1;
  }
  return name;
}

}  // namespace vramd::shim::hook
