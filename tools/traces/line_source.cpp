#include "tools/traces/line_source.hpp"

#include <zlib.h>

#include <cerrno>
#include <cstring>

namespace vramd::traces {
namespace {

// The longest line of a trace has 5 fields of at most 20 digits; whatever is longer is not a trace.
constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kBufferSize = std::size_t{64} << 10;

}  // namespace

LineSource::LineSource(const std::string& path) : buffer_(kBufferSize) {
  errno = 0;
  file_ = gzopen(path.c_str(), "rbe");
  if (!file_) error_ = std::string("cannot open: ") + (errno ? std::strerror(errno) : "out of memory");
}

LineSource::~LineSource() {
  if (file_) gzclose_r(file_);
}

bool LineSource::refill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const int got = gzread(file_, buffer_.data() + end_, static_cast<unsigned>(buffer_.size() - end_));
  int code = Z_OK;
  const char* text = gzerror(file_, &code);
  // A truncated .gz delivers its last bytes first and then Z_BUF_ERROR.
  if (got < 0 || code == Z_BUF_ERROR) {
    error_ = std::string("cannot read: ") + (code == Z_ERRNO ? std::strerror(errno) : text) +
             "; expected plain text or a complete gzip file";
    return false;
  }
  end_ += static_cast<std::size_t>(got);
  return got > 0;
}

bool LineSource::next(std::string_view& line) {
  if (!error_.empty()) return false;
  ++number_;
  std::size_t searched = 0;
  for (;;) {
    const char* start = buffer_.data() + begin_;
    const std::size_t have = end_ - begin_;
    if (const void* newline = have > searched ? std::memchr(start + searched, '\n', have - searched) : nullptr) {
      line = {start, static_cast<std::size_t>(static_cast<const char*>(newline) - start)};
      begin_ += line.size() + 1;
      return true;
    }
    if (have > kLongestLine) {
      error_ = "line of more than " + std::to_string(kLongestLine) + " bytes; expected a text file of short lines";
      return false;
    }
    searched = have;
    if (refill()) continue;
    if (!error_.empty() || have == 0) return false;
    line = {buffer_.data() + begin_, have};  // the last line, without a newline
    begin_ = end_;
    return true;
  }
}

}  // namespace vramd::traces
