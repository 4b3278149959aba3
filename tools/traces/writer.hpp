// Writes a trace; compressed when the name ends in ".gz". One thread.
// Does not check what it writes: a Reader does.
#pragma once

#include <string>

#include "tools/traces/event.hpp"

struct gzFile_s;

namespace vramd::traces {

class Writer {
 public:
  explicit Writer(std::string path);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void write(const Event& event);

  // Flushes and closes. False when anything failed since the beginning; error() says what.
  bool close();
  const std::string& error() const { return error_; }

 private:
  void flush();

  std::string path_;
  std::string error_;
  std::string pending_;
  gzFile_s* file_ = nullptr;
};

}  // namespace vramd::traces
