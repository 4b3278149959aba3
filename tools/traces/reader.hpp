// Reads a trace (.csv or .csv.gz) event by event and checks every line.
//
//   Reader reader(path);
//   for (Event event; reader.next(event);) ...
//   if (!reader.error().empty()) ...
//
// What next() returned is a valid prefix of a trace: ids are dense, a release names a live block and repeats
// its size. One thread. Memory: 8 bytes per block of the trace.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tools/traces/event.hpp"
#include "tools/traces/live_blocks.hpp"

namespace vramd::traces {

class LineSource;

class Reader {
 public:
  explicit Reader(std::string path);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // The next event. False at the end and at the first error, and from then on.
  bool next(Event& event);

  // "file:line: what is wrong; what is expected", or empty.
  const std::string& error() const { return error_; }

 private:
  bool fail(const std::string& what);
  bool next_line(std::string_view& line);
  bool check(const Event& event);

  std::string path_;
  std::string error_;
  std::unique_ptr<LineSource> lines_;
  LiveBlocks live_;
  std::uint64_t last_time_ = 0;
  bool recording_began_ = false;  // an 'a' or 'f' was seen
  bool done_ = false;
};

}  // namespace vramd::traces
