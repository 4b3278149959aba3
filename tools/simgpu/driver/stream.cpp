#include "tools/simgpu/driver/stream.hpp"

#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <thread>
#include <utility>

#include "tools/simgpu/driver/calls.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/guard.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/process.hpp"
#include "tools/simgpu/driver/registry.hpp"
#include "tools/simgpu/driver/settings.hpp"
#include "tools/simgpu/driver/timeline.hpp"

namespace simgpu {
namespace {

// The program's signal handlers run on the program's threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    for (const int fatal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) ::sigdelset(&all, fatal);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Stream::Stream(Context& owner, unsigned stream_flags, int stream_priority, std::uint64_t stream_id)
    : context(owner), life(owner.life()), flags(stream_flags), priority(stream_priority), id(stream_id) {}

Point Stream::push(Operation operation) {
  operation.call_site = call_site;
  std::uint64_t sequence = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!working_) {
      const SignalsBlocked inherited_by_worker;
      std::thread([self = shared_from_this()] { self->work(); }).detach();
      working_ = true;
    }
    sequence = submitted_.load(std::memory_order_relaxed) + 1;
    if (operation.writes_host) host_write_ = sequence;
    queue_.push_back(std::move(operation));
    submitted_.store(sequence, std::memory_order_release);
  }
  work_.notify_one();
  return {shared_from_this(), sequence};
}

Point Stream::tail() { return {shared_from_this(), submitted_.load(std::memory_order_acquire)}; }

Point Stream::last_host_write() {
  const std::lock_guard lock(mutex_);
  return {shared_from_this(), host_write_};
}

void Stream::wait(std::uint64_t sequence) {
  std::unique_lock lock(mutex_);
  ++waiters_;
  done_.wait(lock, [&] { return reached(sequence); });
  --waiters_;
}

void Stream::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  work_.notify_one();
}

void Stream::work() {
  timeline_stream = id;
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return !queue_.empty() || closing_; });
    if (queue_.empty()) break;
    {
      Operation operation = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      execute(operation);
    }  // what the operation captured is gone before it counts as done
    lock.lock();
    completed_.store(completed_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    if (waiters_) done_.notify_all();
  }
  working_ = false;
}

void Stream::execute(Operation& operation) {
  call_site = operation.call_site;
  for (const Point& point : operation.after) point.wait();
  if (settings().protect) watch_faults();
  if (context.fault() != CUDA_SUCCESS && !operation.always) return;
  control().running().fetch_add(1, std::memory_order_relaxed);
  if (const CUresult result = operation.work ? perform_noted(*operation.work, context) : operation.run())
    context.set_fault(result);
  control().running().fetch_sub(1, std::memory_order_relaxed);
}

CUresult resolve_stream(CUstream handle, StreamRef& stream) {
  const bool per_thread = handle == CU_STREAM_PER_THREAD || (handle == nullptr && per_thread_default_stream);
  if (per_thread || handle == nullptr || handle == CU_STREAM_LEGACY) {
    Context* context = nullptr;
    if (const CUresult result = usable_context(context)) return result;
    stream = per_thread ? context->per_thread_stream() : context->legacy_stream();
    return CUDA_SUCCESS;
  }
  stream = registry<Stream>().find(handle);
  if (!stream) {
    misuse("use of a stream that is not there", "");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!stream->context.alive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return stream->context.fault();
}

CUresult submit(const StreamRef& stream, Operation operation, Point* point) {
  CUresult result = CUDA_SUCCESS;
  if (active_captures.load(std::memory_order_acquire) != 0 && capture_operation(*stream, operation, result)) return result;
  const auto alive = stream->context.hold_alive();
  if (!stream->context.alive() || stream->life != stream->context.life()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  // Read before the operation gets its own number: two submissions can't end up waiting for each other.
  std::vector<Point> order = stream->context.implicit_order(*stream);
  operation.after.insert(operation.after.end(), std::make_move_iterator(order.begin()), std::make_move_iterator(order.end()));
  const Point queued = stream->push(std::move(operation));
  if (point) *point = queued;
  return CUDA_SUCCESS;
}

CUresult wait_for(const Point& point) {
  if (!point.stream) return CUDA_SUCCESS;
  point.wait();
  return point.stream->context.fault();
}

}  // namespace simgpu
