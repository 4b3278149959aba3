#include "tools/simgpu/driver/context.hpp"

#include <algorithm>
#include <array>

#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/event.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/memory.hpp"
#include "tools/simgpu/driver/module.hpp"
#include "tools/simgpu/driver/process.hpp"
#include "tools/simgpu/driver/registry.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {
namespace {

// Trivially destructible: exit handlers may call the driver after the thread's objects are gone.
struct CurrentStack {
  static constexpr int kDepth = 64;
  Context* entries[kDepth];
  int depth;
};
thread_local CurrentStack stack{};

struct Contexts {
  std::mutex mutex;
  std::vector<std::unique_ptr<Context>> all;
  std::array<Context*, kMaxDevices> primary{};
};

Contexts& contexts() {
  static Contexts* const instance = new Contexts;
  return *instance;
}

}  // namespace

std::uint64_t next_object_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Context::Context(int ordinal, bool is_primary, unsigned initial_flags)
    : device(ordinal), primary(is_primary), id(next_object_id()), flags(initial_flags) {}

void Context::set_fault(CUresult error) {
  int none = CUDA_SUCCESS;
  if (!fault_.compare_exchange_strong(none, error)) return;
  misuse("context faulted", "error " + std::to_string(error) + " on device " + std::to_string(device));
}

bool Context::has_peer(int other) const {
  const std::lock_guard lock(state_mutex);
  return peers.contains(other);
}

CUresult Context::activate() {
  if (const CUresult result = control().charge_context(static_cast<int>(place_of(device)), settings().context_bytes))
    return result;
  fault_.store(CUDA_SUCCESS);
  life_.fetch_add(1, std::memory_order_release);
  alive_.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

void Context::deactivate() {
  abandon_captures_of(*this);
  for (const StreamRef& stream : streams()) stream->tail().wait();
  {
    const std::unique_lock none_submits(ending_);
    alive_.store(false, std::memory_order_release);
  }
  for (const StreamRef& stream : streams()) stream->tail().wait();
  free_memory_of(*this);
  unload_modules_of(*this);
  registry<Stream>().remove_if([this](const Stream& stream) { return &stream.context == this; });
  registry<Event>().remove_if([this](const Event& event) { return &event.context == this; });
  {
    const std::lock_guard lock(streams_mutex_);
    for (const StreamRef& stream : streams_) stream->close();
    streams_.clear();
    legacy_.reset();
    per_thread_.clear();
  }
  control().uncharge_context(static_cast<int>(place_of(device)), settings().context_bytes);
}

StreamRef Context::create_stream(unsigned stream_flags, int priority) {
  auto stream = std::make_shared<Stream>(*this, stream_flags, priority, next_object_id());
  const std::lock_guard lock(streams_mutex_);
  std::erase_if(streams_, [](const StreamRef& other) { return other->closing() && other->idle(); });
  streams_.push_back(stream);
  return stream;
}

StreamRef Context::default_stream_locked(StreamRef& stream, bool legacy) {
  if (!stream) {
    stream = std::make_shared<Stream>(*this, CU_STREAM_DEFAULT, 0, next_object_id());
    if (legacy) stream->make_legacy();
    streams_.push_back(stream);
  }
  return stream;
}

StreamRef Context::legacy_stream() {
  const std::lock_guard lock(streams_mutex_);
  return default_stream_locked(legacy_, true);
}

StreamRef Context::per_thread_stream() {
  const std::lock_guard lock(streams_mutex_);
  return default_stream_locked(per_thread_[std::this_thread::get_id()], false);
}

void Context::retire_stream(const StreamRef& stream) {
  stream->close();
  const std::lock_guard lock(streams_mutex_);
  std::erase_if(streams_, [&](const StreamRef& other) { return other->closing() && other->idle(); });
}

std::vector<StreamRef> Context::streams() {
  const std::lock_guard lock(streams_mutex_);
  return streams_;
}

CUresult Context::synchronize() {
  std::vector<Point> pending;
  {
    const std::lock_guard lock(streams_mutex_);
    for (const StreamRef& stream : streams_) {
      if (!stream->idle()) pending.push_back(stream->tail());
    }
  }
  for (const Point& point : pending) point.wait();
  return fault();
}

std::vector<Point> Context::implicit_order(const Stream& stream) {
  std::vector<Point> points;
  if (!stream.blocking()) return points;
  const std::lock_guard lock(streams_mutex_);
  if (!stream.legacy()) {
    if (legacy_ && !legacy_->idle()) points.push_back(legacy_->tail());
    return points;
  }
  for (const StreamRef& other : streams_) {
    if (other.get() != &stream && other->blocking() && !other->idle()) points.push_back(other->tail());
  }
  return points;
}

Context* find_context(CUcontext handle) {
  const std::lock_guard lock(contexts().mutex);
  const auto found =
      std::ranges::find_if(contexts().all, [&](const auto& context) { return handle_of(context.get()) == handle; });
  return found == contexts().all.end() ? nullptr : found->get();
}

Context& primary_context(int device) {
  const std::lock_guard lock(contexts().mutex);
  Context*& primary = contexts().primary[static_cast<std::size_t>(device)];
  if (!primary) {
    contexts().all.push_back(std::make_unique<Context>(device, true, 0u));
    primary = contexts().all.back().get();
  }
  return *primary;
}

CUresult create_context(int device, unsigned flags, Context*& context) {
  auto created = std::make_unique<Context>(device, false, flags);
  if (const CUresult result = created->activate()) return result;
  context = created.get();
  const std::lock_guard lock(contexts().mutex);
  contexts().all.push_back(std::move(created));
  return CUDA_SUCCESS;
}

Context* current_context() { return stack.depth ? stack.entries[stack.depth - 1] : nullptr; }

void replace_current(Context* context) {
  if (stack.depth) --stack.depth;
  if (context) stack.entries[stack.depth++] = context;
}

bool push_current(Context* context) {
  if (stack.depth == CurrentStack::kDepth) return false;
  stack.entries[stack.depth++] = context;
  return true;
}

Context* pop_current() { return stack.depth ? stack.entries[--stack.depth] : nullptr; }

CUresult usable_context(Context*& context) {
  context = current_context();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return context->fault();
}

bool device_has_context(int device) {
  const std::lock_guard lock(contexts().mutex);
  return std::ranges::any_of(contexts().all, [&](const auto& c) { return c->device == device && c->alive(); });
}

}  // namespace simgpu
