// Lines of a file that may be compressed by gzip. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct gzFile_s;

namespace vramd::traces {

class LineSource {
 public:
  explicit LineSource(const std::string& path);
  ~LineSource();
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;

  // The next line without its newline; valid until the next call. False at the end and at an error.
  bool next(std::string_view& line);

  std::uint64_t number() const { return number_; }  // of the line last returned or tried, from 1
  const std::string& error() const { return error_; }

 private:
  bool refill();

  gzFile_s* file_ = nullptr;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // bytes read and not yet returned
  std::uint64_t number_ = 0;
  std::string error_;
};

}  // namespace vramd::traces
