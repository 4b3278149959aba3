// Events: record, query, wait, elapsed time.
#include <ctime>
#include <utility>

#include "impl.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/event.hpp"
#include "tools/simgpu/driver/graph.hpp"
#include "tools/simgpu/driver/log.hpp"
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

namespace impl {

CUresult cuEventCreate(CUevent* handle, unsigned int flags) {
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!handle || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  auto event = std::make_shared<Event>(*context, flags);
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
  Point point;
  if (!last_record(*event, point)) return CUDA_ERROR_CAPTURED_EVENT;
  return point.reached() ? event->context.fault() : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent handle) {
  const EventRef event = find_event(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  Point point;
  if (!last_record(*event, point)) return CUDA_ERROR_CAPTURED_EVENT;
  return wait_for(point);
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

}  // namespace impl
}  // namespace simgpu
