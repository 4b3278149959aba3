// Streams: a FIFO of operations each, executed by a worker thread of its own.
#pragma once

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/simgpu/driver/work.hpp"

namespace simgpu {

class Context;
class Stream;
struct Capture;
using StreamRef = std::shared_ptr<Stream>;

// A position in a stream: reached when the operation of that number is done.
struct Point {
  StreamRef stream;
  std::uint64_t sequence = 0;
  bool reached() const;
  void wait() const;
};

struct Operation {
  // What is done: `run`, or `work`, which a capture can take. An error faults the context (sticky). Not done on a faulted
  // context unless `always`.
  std::function<CUresult()> run;
  WorkRef work;
  bool always = false;
  bool writes_host = false;         // may write memory that a later pageable copy reads
  std::vector<Point> after;         // other streams' positions to wait for first
  const void* call_site = nullptr;  // of the submission; set by push()
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Context& owner, unsigned stream_flags, int stream_priority, std::uint64_t stream_id);

  // Takes part in the legacy default stream's ordering.
  bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
  bool legacy() const { return legacy_; }
  void make_legacy() { legacy_ = true; }

  Point push(Operation operation);
  // Everything submitted so far. Its wait() is cheap when the stream is idle.
  Point tail();
  bool idle() const { return completed_.load(std::memory_order_acquire) == submitted_.load(std::memory_order_acquire); }
  bool reached(std::uint64_t sequence) const { return completed_.load(std::memory_order_acquire) >= sequence; }
  void wait(std::uint64_t sequence);
  // The last operation that may write host memory.
  Point last_host_write();
  // The worker ends after the last operation.
  void close();
  bool closing() const { return closing_.load(std::memory_order_acquire); }

  Context& context;
  const std::uint64_t life;  // of the context; later ones have other streams
  const unsigned flags;
  const int priority;
  const std::uint64_t id;
  std::shared_ptr<Capture> capture;  // guarded by the capture lock (capture.hpp)

 private:
  void work();
  void execute(Operation& operation);

  bool legacy_ = false;
  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<Operation> queue_;
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> completed_{0};  // released by the worker after each operation
  std::uint64_t host_write_ = 0;
  int waiters_ = 0;
  bool working_ = false;
  std::atomic<bool> closing_{false};  // set under mutex_
};

inline bool Point::reached() const { return !stream || stream->reached(sequence); }
inline void Point::wait() const {
  if (!reached()) stream->wait(sequence);
}

// The stream that a handle means for the calling thread: 0, the legacy and per-thread constants, or a created
// stream.
CUresult resolve_stream(CUstream handle, StreamRef& stream);

// Puts an operation into a stream: into its capture when it captures, else into its queue, behind what the
// legacy default stream's ordering demands. `point` (optional) is set to the operation's position when it was
// queued.
CUresult submit(const StreamRef& stream, Operation operation, Point* point = nullptr);

// Waits and answers the context's sticky error, if it has one.
CUresult wait_for(const Point& point);

}  // namespace simgpu
