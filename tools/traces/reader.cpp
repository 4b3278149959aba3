#include "tools/traces/reader.hpp"

#include "tools/traces/format.hpp"
#include "tools/traces/line_source.hpp"

namespace vramd::traces {

Reader::Reader(std::string path) : path_(std::move(path)), lines_(std::make_unique<LineSource>(path_)) {
  std::string_view line;
  if (!lines_->error().empty()) {  // not opened: there is no line to name
    error_ = path_ + ": " + lines_->error();
    done_ = true;
  } else if (!next_line(line)) {
    if (error_.empty()) fail("the file is empty; expected the first line " + quoted(kHeader));
  } else if (line != kHeader) {
    fail("first line " + quoted(line) + "; expected " + quoted(kHeader));
  }
}

Reader::~Reader() = default;

bool Reader::fail(const std::string& what) {
  error_ = path_ + ":" + std::to_string(lines_->number()) + ": " + what;
  done_ = true;
  return false;
}

bool Reader::next_line(std::string_view& line) {
  if (lines_->next(line)) return true;
  done_ = true;
  return lines_->error().empty() ? false : fail(lines_->error());
}

bool Reader::next(Event& event) {
  std::string_view line;
  if (done_ || !next_line(line)) return false;
  const std::string wrong = parse_line(line, event);
  return wrong.empty() ? check(event) : fail(wrong);
}

bool Reader::check(const Event& event) {
  const std::string id = std::to_string(event.id);
  if (event.microseconds < last_time_) {
    return fail("t_us " + std::to_string(event.microseconds) + " runs backwards; expected at least " +
                std::to_string(last_time_));
  }
  last_time_ = event.microseconds;
  switch (event.op) {
    case Op::present:
      if (recording_began_) {
        return fail("block " + id + " is declared present after the first a or f; expected every p before them");
      }
      [[fallthrough]];
    case Op::allocate:
      recording_began_ |= event.op == Op::allocate;
      if (event.id != live_.next_id()) {
        return fail("id " + id + " out of order; expected " + std::to_string(live_.next_id()) +
                    ", ids are dense from 0 and never reused");
      }
      if (event.size == 0) return fail("block " + id + " has size 0; expected at least 1 byte");
      if (!live_.add(event.size)) {
        return fail("block " + id + " brings the live bytes over 64 bits; expected a smaller size than " +
                    std::to_string(event.size));
      }
      return true;
    case Op::release: {
      recording_began_ = true;
      const std::uint64_t size = live_.size_of(event.id);
      if (event.id >= live_.next_id()) {
        return fail("block " + id + " is freed and was never allocated; expected the id of an earlier p or a");
      }
      if (size == 0) return fail("block " + id + " is freed twice; expected the id of a live block");
      if (size != event.size) {
        return fail("block " + id + " is freed with size " + std::to_string(event.size) + "; expected " + std::to_string(size) +
                    " as at its allocation");
      }
      live_.remove(event.id);
      return true;
    }
    case Op::grew:
    case Op::shrank:
    case Op::marker: return event.id == 0 || fail("id " + id + " of an S, s or O line; expected 0");
  }
  return false;
}

}  // namespace vramd::traces
