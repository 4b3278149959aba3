#include "tools/traces/writer.hpp"

#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "tools/traces/format.hpp"

namespace vramd::traces {
namespace {

constexpr std::size_t kFlushAt = std::size_t{64} << 10;

}  // namespace

Writer::Writer(std::string path) : path_(std::move(path)) {
  const bool compressed = path_.size() > 3 && path_.compare(path_.size() - 3, 3, ".gz") == 0;
  errno = 0;
  // 'T' writes through without compression. Files of equal events are equal: zlib stores no name and no time
  // here.
  file_ = gzopen(path_.c_str(), compressed ? "wbe9" : "wbeT");
  if (!file_) {
    error_ = path_ + ": cannot create: " + (errno ? std::strerror(errno) : "out of memory");
    return;
  }
  pending_ = std::string(kHeader) + "\n";
}

Writer::~Writer() { close(); }

void Writer::write(const Event& event) {
  if (!file_) return;
  append_line(event, pending_);
  if (pending_.size() >= kFlushAt) flush();
}

void Writer::flush() {
  if (error_.empty() && !pending_.empty() && gzwrite(file_, pending_.data(), static_cast<unsigned>(pending_.size())) <= 0) {
    error_ = path_ + ": cannot write: " + std::strerror(errno);
  }
  pending_.clear();
}

bool Writer::close() {
  if (!file_) return error_.empty();
  flush();
  const int status = gzclose_w(file_);
  file_ = nullptr;
  if (status != Z_OK && error_.empty()) error_ = path_ + ": cannot write: " + std::strerror(errno);
  return error_.empty();
}

}  // namespace vramd::traces
