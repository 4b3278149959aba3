#include "policies/file/document.hpp"

#include <algorithm>
#include <list>
#include <map>
#include <nlohmann/json.hpp>

#include "policies/file/syntax.hpp"
#include "policies/file/text.hpp"

namespace vramd::policy {
namespace {

constexpr int kNumberOverflow = 406;  // nlohmann/json: a number that no double can hold
constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";

// Follows the reader through the text: each event is one token, so its start is what comes after the previous
// token's end, white space, comments and separators. The reader has validated a token before its event, so
// scans end in it.
class TreeBuilder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  TreeBuilder(std::string_view text, Document& document) : text_(text), lines_(text), document_(document) {
    if (text.starts_with(kUtf8Mark)) cursor_ = kUtf8Mark.size();
  }

  bool null() { return leaf(Kind::null, 4) != nullptr; }
  bool boolean(bool value) {
    leaf(Kind::boolean, value ? 4 : 5)->boolean = value;
    return true;
  }
  bool number_integer(number_integer_t value) { return integer(value < 0, magnitude(value)); }
  bool number_unsigned(number_unsigned_t value) { return integer(false, value); }
  bool number_float(number_float_t value, const string_t& /*spelling*/) {
    number(Kind::real)->real = value;
    return true;
  }
  bool string(string_t& value) {
    const std::size_t start = next_token();
    Node* node = add(Kind::string, start);
    node->text = value;
    cursor_ = string_end(start);
    return true;
  }
  bool binary(binary_t& /*value*/) { return false; }  // JSON text has none

  bool start_object(std::size_t /*size*/) { return open(Kind::object); }
  bool start_array(std::size_t /*size*/) { return open(Kind::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    const std::size_t start = next_token();
    cursor_ = string_end(start);
    const Position at = lines_.at(start);
    Frame& frame = open_.back();
    const auto [earlier, is_new] = frame.keys.emplace(name, at.line);
    if (is_new) {
      frame.node->members.push_back({name, at, {}});
      pending_ = &frame.node->members.back().value;
    } else {
      report(at, path_of(name), in_quotes(name) + " is given twice, first in line " + std::to_string(earlier->second),
             "keep one");
      duplicates_.emplace_back();  // read, so that its inside is checked for syntax, and dropped
      pending_ = &duplicates_.back();
    }
    pending_is_duplicate_ = !is_new;
    last_key_ = name;
    last_ = Last::key;
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const nlohmann::json::exception& error) {
    const std::string where = last_ == Last::key ? path_of(last_key_) : path();
    if (error.id == kNumberOverflow) {
      const std::size_t start = next_token();
      const std::string_view number = text_.substr(start, number_end(start) - start);
      report(lines_.at(start), where, printable(number) + " is too large for a number", "write a smaller one");
    } else {
      const int open_line = open_.empty() ? 0 : open_.back().node->at.line;
      SyntaxProblem problem = explain_syntax(text_, cursor_, expected(), open_line);
      report(lines_.at(problem.offset), where, std::move(problem.what), std::move(problem.instead));
    }
    // A key whose value never came is as good as not there.
    if (last_ == Last::key && !pending_is_duplicate_) open_.back().node->members.pop_back();
    return false;
  }

 private:
  enum class Last : std::uint8_t { start, open, key, value };
  struct Frame {
    Node* node;                       // stays valid: while a container is open, nothing is added to the one around it
    std::map<std::string, int> keys;  // to the line of their first appearance
  };

  static std::uint64_t magnitude(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    return value < 0 ? ~bits + 1 : bits;
  }

  // White space, comments, ':' and ',' lie between two tokens.
  std::size_t next_token() const {
    std::size_t at = skip_blank(text_, cursor_);
    while (at < text_.size() && (text_[at] == ':' || text_[at] == ',')) at = skip_blank(text_, at + 1);
    return at;
  }
  std::size_t string_end(std::size_t start) const {
    std::size_t at = start + 1;
    while (at < text_.size() && text_[at] != '"') at += text_[at] == '\\' ? 2 : 1;
    return std::min(at + 1, text_.size());
  }
  // As the grammar has it: of "01" only "0" is a number.
  std::size_t number_end(std::size_t start) const {
    const std::size_t digits = text_[start] == '-' ? start + 1 : start;
    const bool zero = text_.substr(digits).starts_with('0');
    const bool ends_there = zero && text_.substr(digits + 1).find_first_of(".eE") != 0;
    if (ends_there) return digits + 1;
    return std::min(text_.find_first_not_of("0123456789+-.eE", start), text_.size());
  }

  Node* add(Kind kind, std::size_t start) {
    Node* node = &document_.root;
    if (last_ == Last::key) {
      node = pending_;
    } else if (!open_.empty()) {
      node = &open_.back().node->items.emplace_back();
    }
    node->kind = kind;
    node->at = lines_.at(start);
    last_ = Last::value;
    return node;
  }
  Node* leaf(Kind kind, std::size_t length) {
    const std::size_t start = next_token();
    cursor_ = start + length;
    return add(kind, start);
  }
  Node* number(Kind kind) {
    const std::size_t start = next_token();
    cursor_ = number_end(start);
    Node* node = add(kind, start);
    node->text = text_.substr(start, cursor_ - start);
    return node;
  }
  bool integer(bool negative, std::uint64_t value) {
    Node* node = number(Kind::integer);
    node->negative = negative;
    node->magnitude = value;
    node->real = negative ? -static_cast<double>(value) : static_cast<double>(value);
    return true;
  }
  bool open(Kind kind) {
    const std::size_t start = next_token();
    if (open_.size() >= kMaxDepth) {
      report(lines_.at(start), {}, "nested deeper than " + std::to_string(kMaxDepth) + " levels",
             "a policy needs no more than 4");
      return false;
    }
    cursor_ = start + 1;
    Node* node = add(kind, start);
    open_.push_back({node, {}});
    last_ = Last::open;
    return true;
  }
  bool close() {
    cursor_ = next_token() + 1;
    open_.pop_back();
    last_ = Last::value;
    return true;
  }

  Expected expected() const {
    if (last_ == Last::start) return Expected::value;
    if (last_ == Last::key) return Expected::colon;
    if (open_.empty()) return Expected::nothing;
    const bool object = open_.back().node->kind == Kind::object;
    if (last_ == Last::open) return object ? Expected::first_key : Expected::first_item;
    return object ? Expected::separator : Expected::item_separator;
  }

  // The path of the innermost open container: the last member or item of each is the one being read.
  std::string path() const {
    std::string result;
    for (std::size_t depth = 0; depth + 1 < open_.size(); ++depth) {
      const Node& node = *open_[depth].node;
      if (node.kind == Kind::array) {
        result += '[' + std::to_string(node.items.size() - 1) + ']';
      } else if (!node.members.empty()) {
        result += (result.empty() ? "" : ".") + printable(node.members.back().key);
      }
    }
    return result;
  }
  std::string path_of(std::string_view key) const {
    const std::string parent = path();
    return parent.empty() ? printable(key) : parent + '.' + printable(key);
  }

  void report(Position at, std::string where, std::string what, std::string instead) {
    constexpr std::size_t kEnough = 100;
    if (document_.problems.size() < kEnough)
      document_.problems.push_back({at, std::move(where), std::move(what), std::move(instead)});
  }

  std::string_view text_;
  LineCounter lines_;
  Document& document_;
  std::size_t cursor_ = 0;  // end of the last token
  std::vector<Frame> open_;
  std::string last_key_;
  Node* pending_ = nullptr;  // where the value of the last key goes
  bool pending_is_duplicate_ = false;
  std::list<Node> duplicates_;
  Last last_ = Last::start;
};

bool refuse_unreadable(std::string_view text, Document& document) {
  const auto refuse = [&](std::size_t offset, std::string what, std::string instead) {
    document.problems.push_back({LineCounter(text).at(offset), {}, std::move(what), std::move(instead)});
    return true;
  };
  if (text.size() > kMaxFileBytes) return refuse(0, "larger than 1 MiB", "a policy is a few KiB; is this the right file?");
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return refuse(0, "saved as UTF-16", "save the file as UTF-8");
  // The reader would take a NUL for the end of the text and accept whatever follows it.
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos) return refuse(nul, "a NUL byte; this is no text file", "save the file as UTF-8 text");
  return false;
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const Member& member : members)
    if (member.key == key) return &member.value;
  return nullptr;
}

Document read_document(std::string_view text) {
  Document document;
  if (refuse_unreadable(text, document)) return document;
  TreeBuilder builder(text, document);
  constexpr bool kStrict = true, kIgnoreComments = true;
  document.complete = nlohmann::json::sax_parse(text.begin(), text.end(), &builder, nlohmann::json::input_format_t::json,
                                                kStrict, kIgnoreComments);
  return document;
}

}  // namespace vramd::policy
