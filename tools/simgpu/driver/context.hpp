// Contexts, and which one is current on which thread.
#pragma once

#include <cuda.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "tools/simgpu/driver/stream.hpp"

namespace simgpu {

class Context {
 public:
  Context(int device, bool primary, unsigned flags);

  const int device;
  const bool primary;
  const unsigned long long id;
  std::atomic<unsigned> flags;

  // Whether the context exists now. A primary context comes and goes, a created one dies once.
  bool alive() const { return alive_.load(std::memory_order_acquire); }
  // The sticky error, or CUDA_SUCCESS.
  CUresult fault() const { return static_cast<CUresult>(fault_.load(std::memory_order_acquire)); }
  void set_fault(CUresult error);

  // Which of its lives this is: counts activate().
  std::uint64_t life() const { return life_.load(std::memory_order_acquire); }
  // Held while something is submitted, so that the end of a life lets nothing in behind what it waits for.
  std::shared_lock<std::shared_mutex> hold_alive() { return std::shared_lock(ending_); }

  // Charges the overhead and revives; OUT_OF_MEMORY when it doesn't fit.
  CUresult activate();
  // Waits for all work, frees what belongs to the context, gives the overhead back.
  void deactivate();

  StreamRef create_stream(unsigned flags, int priority);
  StreamRef legacy_stream();
  StreamRef per_thread_stream();
  // For a destroyed stream: it counts in synchronize() until its work is done.
  void retire_stream(const StreamRef& stream);
  std::vector<StreamRef> streams();

  // All work submitted to any stream so far. Returns the sticky error.
  CUresult synchronize();
  // Positions that an operation on the stream must wait for because of the legacy default stream.
  std::vector<Point> implicit_order(const Stream& stream);

  // Whether memory of the device is accessible by cuCtxEnablePeerAccess.
  bool has_peer(int other) const;

  // Guards the two below: they change rarely.
  mutable std::mutex state_mutex;
  std::map<int, std::size_t> limits;
  std::set<int> peers;  // device ordinals whose memory this context may access

 private:
  StreamRef default_stream_locked(StreamRef& stream, bool legacy);

  std::shared_mutex ending_;
  std::atomic<bool> alive_{false};
  std::atomic<std::uint64_t> life_{0};
  std::atomic<int> fault_{CUDA_SUCCESS};
  std::mutex streams_mutex_;
  std::vector<StreamRef> streams_;  // all of them
  StreamRef legacy_;
  std::map<std::thread::id, StreamRef> per_thread_;
};

// The context behind a handle, or nullptr. Contexts are never deleted, so a stale handle is told by alive().
Context* find_context(CUcontext handle);
inline CUcontext handle_of(Context* context) { return reinterpret_cast<CUcontext>(context); }

Context& primary_context(int device);
CUresult create_context(int device, unsigned flags, Context*& context);

// The thread's stack of current contexts.
Context* current_context();
void replace_current(Context* context);
bool push_current(Context* context);
Context* pop_current();

// The current context if it can be used: else INVALID_CONTEXT, CONTEXT_IS_DESTROYED, or its sticky error.
CUresult usable_context(Context*& context);
// Whether any context exists on the device.
bool device_has_context(int device);

std::uint64_t next_object_id();

}  // namespace simgpu
