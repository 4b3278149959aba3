// Events: the last position that was recorded, with the time when the worker passed it.
#pragma once

#include <cuda.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/simgpu/driver/control.hpp"
#include "tools/simgpu/driver/stream.hpp"

namespace simgpu {

class Context;
struct Capture;
struct Node;

struct Stamp {
  std::atomic<std::int64_t> nanos{0};  // CLOCK_MONOTONIC
};

struct Event {
  Event(Context& owner, unsigned event_flags) : context(owner), flags(event_flags) {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  Context& context;
  const unsigned flags;

  std::mutex mutex;
  bool recorded = false;
  Point point;
  std::shared_ptr<Stamp> stamp;

  // Of an event that processes share: its positions are counted there, whoever records it. `owned`: made here.
  EventEntry* shared = nullptr;
  ChunkName shared_name;
  bool owned = false;

  // Set when the last record was captured; guarded by capture_mutex().
  std::shared_ptr<Capture> capture;
  std::vector<Node*> captured_after;
};

using EventRef = std::shared_ptr<Event>;

}  // namespace simgpu
