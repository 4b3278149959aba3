#include "policies/file/findings.hpp"

#include <algorithm>
#include <tuple>

namespace vramd::policy {
namespace {
constexpr std::size_t kMostFindings = 100;
}

std::string Diagnostic::text(const std::string& file) const {
  std::string line_text = file + ':' + std::to_string(line) + ':' + std::to_string(column) + ": ";
  line_text += severity == Severity::error ? "error: " : "warning: ";
  if (!path.empty()) line_text += path + ": ";
  line_text += what;
  if (!instead.empty()) line_text += "; " + instead;
  return line_text;
}

void Findings::error(Position at, std::string path, std::string what, std::string instead) {
  has_error_ = true;
  add(Diagnostic::Severity::error, at, std::move(path), std::move(what), std::move(instead));
}

void Findings::warning(Position at, std::string path, std::string what, std::string instead) {
  add(Diagnostic::Severity::warning, at, std::move(path), std::move(what), std::move(instead));
}

void Findings::add(Diagnostic::Severity severity, Position at, std::string path, std::string what, std::string instead) {
  if (found_.size() >= kMostFindings) {
    ++left_out_;
    return;
  }
  found_.push_back({severity, at.line, at.column, std::move(path), std::move(what), std::move(instead)});
}

std::vector<Diagnostic> Findings::take() {
  std::stable_sort(found_.begin(), found_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  if (left_out_ != 0) {
    const Diagnostic& last = found_.back();
    found_.push_back({has_error_ ? Diagnostic::Severity::error : Diagnostic::Severity::warning, last.line, last.column, "",
                      std::to_string(left_out_) + " more problems", "correct these first"});
  }
  return std::move(found_);
}

}  // namespace vramd::policy
