// Collects what is wrong with a file, in the order of the file, and not without bound.
#pragma once

#include <string>
#include <vector>

#include "policies/file/document.hpp"
#include "policies/file/policy.hpp"

namespace vramd::policy {

class Findings {
 public:
  void error(Position at, std::string path, std::string what, std::string instead);
  void warning(Position at, std::string path, std::string what, std::string instead);

  bool has_error() const { return has_error_; }
  std::vector<Diagnostic> take();  // sorted by position

 private:
  void add(Diagnostic::Severity severity, Position at, std::string path, std::string what, std::string instead);

  std::vector<Diagnostic> found_;
  bool has_error_ = false;
  std::size_t left_out_ = 0;
};

}  // namespace vramd::policy
