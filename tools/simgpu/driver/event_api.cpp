// Events: record, query, wait, elapsed time.
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include "impl.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/event.hpp"
#include "tools/simgpu/driver/graph.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/memory.hpp"
#include "tools/simgpu/driver/process.hpp"
#include "tools/simgpu/driver/registry.hpp"

namespace simgpu {
namespace {

std::int64_t now_nanos() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

EventRef find_event(CUevent handle) {
  EventRef event = registry<Event>().find(handle);
  if (!event) misuse("use of an event that is not there", "");
  return event;
}

Operation stamping(std::shared_ptr<Stamp> stamp) {
  Operation operation;
  operation.always = true;  // an event behind a fault still completes
  operation.run = [stamp = std::move(stamp)] {
    stamp->nanos.store(now_nanos());
    return CUDA_SUCCESS;
  };
  return operation;
}

// --- events that processes share

struct EventTicket {  // the contents of a CUipcEventHandle
  std::uint64_t magic;
  std::uint64_t machine_id;
  ChunkName name;
  std::uint32_t user;
};
static_assert(sizeof(EventTicket) <= sizeof(CUipcEventHandle));
constexpr std::uint64_t kEventMagic = 0x746e'6576'656d'6973;  // "simevent"

bool passed(const EventEntry& entry, std::uint64_t position) {
  return entry.completed.load(std::memory_order_acquire) >= position;
}

// Who died completes nothing any more: nobody waits for it for ever.
void wait_passed(const EventEntry& entry, std::uint64_t position) {
  for (int round = 1; !passed(entry, position); ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (round % 1000 == 0 && !control().slot_lives(entry.recorder.load())) return;
  }
}

CUresult record_shared(const EventRef& event, const StreamRef& stream) {
  event->shared->recorder.store(control().own_slot());
  const std::uint64_t position = event->shared->recorded.fetch_add(1, std::memory_order_acq_rel) + 1;
  const auto complete = [event, position] {  // records of one event complete in order of their numbers, or later ones count
    std::uint64_t before = event->shared->completed.load(std::memory_order_relaxed);
    while (before < position && !event->shared->completed.compare_exchange_weak(before, position, std::memory_order_release)) {
    }
    return CUDA_SUCCESS;
  };
  Operation operation;
  operation.always = true;
  operation.run = complete;
  const CUresult result = submit(stream, std::move(operation));
  if (result) complete();  // the number is taken: nobody must wait for it
  return result;
}

CUresult wait_shared(const EventRef& event, const StreamRef& stream) {
  const std::uint64_t position = event->shared->recorded.load(std::memory_order_acquire);
  if (passed(*event->shared, position)) return CUDA_SUCCESS;
  Operation operation;
  operation.run = [event, position] {
    wait_passed(*event->shared, position);
    return CUDA_SUCCESS;
  };
  return submit(stream, std::move(operation));
}

CUresult record(CUevent handle, CUstream stream_handle, bool external = false) {
  StreamRef stream;
  const EventRef event = find_event(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = resolve_stream(stream_handle, stream)) return result;
  if (&stream->context != &event->context) {
    misuse("event of another context recorded", "");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  CUresult result = CUDA_SUCCESS;
  if (event->shared && !is_capturing(*stream)) return record_shared(event, stream);
  if (event->shared && is_capturing(*stream)) return CUDA_ERROR_NOT_SUPPORTED;
  if (external && is_capturing(*stream)) {  // the graph records it at each launch
    Operation operation;
    operation.work = std::make_shared<EventWork>(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
    return submit(stream, std::move(operation));
  }
  if (capture_event_record(*stream, *event, result)) return result;

  auto stamp = std::make_shared<Stamp>();
  const std::lock_guard lock(event->mutex);
  Point point;
  if (const CUresult submitted = submit(stream, stamping(stamp), &point)) return submitted;
  event->recorded = true;
  event->point = point;
  event->stamp = std::move(stamp);
  return CUDA_SUCCESS;
}

// False: the last record was part of a capture; such an event can't be asked about.
bool last_record(Event& event, Point& point) {
  {
    const std::lock_guard lock(capture_mutex());
    if (event.capture) return false;
  }
  const std::lock_guard lock(event.mutex);
  point = event.point;
  return true;
}

}  // namespace

Event::~Event() {
  if (shared && owned) control().destroy_event(shared_name);
}

namespace impl {

CUresult cuEventCreate(CUevent* handle, unsigned int flags) {
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!handle || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  auto event = std::make_shared<Event>(*context, flags);
  if ((flags & CU_EVENT_INTERPROCESS) != 0) {
    event->shared = control().create_event(event->shared_name);
    event->owned = true;
    if (!event->shared) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = reinterpret_cast<CUevent>(event.get());
  registry<Event>().add(std::move(event));
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle) {
  return find_event(handle) && registry<Event>().take(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventRecord(CUevent event, CUstream stream) { return record(event, stream); }

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  return (flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) != 0
             ? CUDA_ERROR_INVALID_VALUE
             : record(event, stream, (flags & CU_EVENT_RECORD_EXTERNAL) != 0);
}

CUresult cuEventQuery(CUevent handle) {
  const EventRef event = find_event(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (event->shared) {
    const bool done = passed(*event->shared, event->shared->recorded.load(std::memory_order_acquire));
    return done ? event->context.fault() : CUDA_ERROR_NOT_READY;
  }
  Point point;
  if (!last_record(*event, point)) return CUDA_ERROR_CAPTURED_EVENT;
  return point.reached() ? event->context.fault() : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent handle) {
  const EventRef event = find_event(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (event->shared) {
    wait_passed(*event->shared, event->shared->recorded.load(std::memory_order_acquire));
    return event->context.fault();
  }
  Point point;
  if (!last_record(*event, point)) return CUDA_ERROR_CAPTURED_EVENT;
  const CUresult result = wait_for(point);
  trim_pools_to_thresholds();
  return result;
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  const EventRef first = find_event(start);
  const EventRef second = find_event(end);
  if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
  if (!first || !second) return CUDA_ERROR_INVALID_HANDLE;
  std::int64_t nanos[2] = {};
  const EventRef events[2] = {first, second};
  for (int i = 0; i < 2; ++i) {
    const std::lock_guard lock(events[i]->mutex);
    const bool timed = (events[i]->flags & CU_EVENT_DISABLE_TIMING) == 0;
    if (!timed || !events[i]->recorded) return CUDA_ERROR_INVALID_HANDLE;
    if (!events[i]->point.reached()) return CUDA_ERROR_NOT_READY;
    if (const CUresult fault = events[i]->context.fault()) return fault;
    if (!events[i]->stamp) return CUDA_ERROR_INVALID_HANDLE;  // its node was switched off
    nanos[i] = events[i]->stamp->nanos.load();
  }
  *milliseconds = static_cast<float>(static_cast<double>(nanos[1] - nanos[0]) * 1e-6);
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags) {
  StreamRef stream;
  const EventRef event = find_event(event_handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if ((flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  CUresult result = CUDA_SUCCESS;
  if ((flags & CU_EVENT_WAIT_EXTERNAL) != 0 && is_capturing(*stream)) {  // the graph waits for it at each launch
    Operation operation;
    operation.work = std::make_shared<EventWork>(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
    return submit(stream, std::move(operation));
  }
  if (active_captures.load(std::memory_order_acquire) != 0 && capture_event_wait(stream, *event, result)) return result;
  if (event->shared) return wait_shared(event, stream);
  Point point;
  {
    const std::lock_guard lock(event->mutex);
    point = event->point;
  }
  if (point.reached() || point.stream == stream) return CUDA_SUCCESS;  // nothing to wait for that order doesn't give
  Operation operation;
  operation.after.push_back(point);
  operation.run = [] { return CUDA_SUCCESS; };
  return submit(stream, std::move(operation));
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event_handle) {
  const EventRef event = find_event(event_handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (!handle || !event->shared) return CUDA_ERROR_INVALID_VALUE;
  const EventTicket ticket{kEventMagic, control().machine_id(), event->shared_name, ::getuid()};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &ticket, sizeof ticket);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent* handle, CUipcEventHandle ipc) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  EventTicket ticket{};
  std::memcpy(static_cast<void*>(&ticket), &ipc, sizeof ticket);
  const bool ours = ticket.magic == kEventMagic && ticket.machine_id == control().machine_id() && ticket.user == ::getuid();
  EventEntry* const entry = ours ? control().find_event(ticket.name) : nullptr;
  if (!handle || !entry) return CUDA_ERROR_INVALID_VALUE;
  if (entry->slot == control().own_slot()) return CUDA_ERROR_INVALID_CONTEXT;  // not in the creator's own process
  auto event = std::make_shared<Event>(*context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
  event->shared = entry;
  event->shared_name = ticket.name;
  *handle = reinterpret_cast<CUevent>(event.get());
  registry<Event>().add(std::move(event));
  return CUDA_SUCCESS;
}

}  // namespace impl
}  // namespace simgpu
