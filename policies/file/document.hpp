// JSON text as a tree in which every key and value knows where it stands in the file.
// nlohmann/json reads the text; its tree keeps neither positions nor duplicate keys, so its SAX events build
// this one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vramd::policy {

inline constexpr std::size_t kMaxFileBytes = 1 << 20;
inline constexpr std::size_t kMaxDepth = 32;

struct Position {
  int line = 1, column = 1;  // 1-based; columns count characters, not bytes
};

enum class Kind : std::uint8_t { null, boolean, integer, real, string, array, object };

struct Member;

struct Node {
  Kind kind = Kind::null;
  Position at;
  bool boolean = false;
  bool negative = false;        // integer
  std::uint64_t magnitude = 0;  // integer, without its sign
  double real = 0;              // integer and real
  std::string text;             // a string's value; a number as it is written
  std::vector<Member> members;  // object, in the order of the file, without the later ones of duplicates
  std::vector<Node> items;      // array

  const Node* find(std::string_view key) const;  // member of an object, or null
};

struct Member {
  std::string key;
  Position at;
  Node value;
};

// What went wrong while reading, in the words of Diagnostic.
struct TextProblem {
  Position at;
  std::string path, what, instead;
};

struct Document {
  Node root;
  bool complete = false;  // false: a syntax error cut the tree off; what stands before it is there
  std::vector<TextProblem> problems;
};

// Never throws on bad text and never recurses deeper than kMaxDepth. `//` and `/* */` comments are allowed.
Document read_document(std::string_view text);

}  // namespace vramd::policy
