// The thread of one GPU: executes driver commands in the order in which they were given, in its own context,
// and posts each result back. It owns the driver handles of all chunks of its device.
//
// The public functions are for the loop thread. Callbacks run where `post` runs them (the loop thread); none
// is posted after stop() has returned.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "allocator/base/unique_fd.hpp"
#include "allocator/chunks/values.hpp"
#include "allocator/driver/driver.hpp"

namespace vramd {

// Taken right after a command. `backed` is what the pool's handles hold on this device.
struct Measure {
  Bytes free;
  Bytes backed;
};

class DeviceActor {
 public:
  using Post = std::function<void(std::function<void()>)>;

  struct Created {
    Result<int> fd;  // the receiver owns it
    Measure measure;
  };
  struct Released {
    Bytes dirty;  // of chunks whose session died: the driver may give them back later
    Measure measure;
  };

  DeviceActor(const Driver& driver, CUdevice device, Post post);
  ~DeviceActor();
  DeviceActor(const DeviceActor&) = delete;
  DeviceActor& operator=(const DeviceActor&) = delete;

  // Starts the thread and retains the device's primary context there. Blocks until that is done.
  Result<Measure> start();

  // Creates a chunk, clears it if so wanted, and exports it. Out of memory when the driver says so, or when less than
  // `headroom` would be left.
  void create(ChunkId chunk, Bytes bytes, Bytes headroom, bool clear, std::function<void(Created)> done);
  // Fills a chunk with zeros. Nobody may use it meanwhile.
  void clear(ChunkId chunk, std::function<void(Result<void>)> done);
  void release(chunks::Releases releases, std::function<void(Released)> done);
  void export_fd(ChunkId chunk, std::function<void(Result<int>)> done);
  void measure(std::function<void(Measure)> done);

  // Drops what is still queued, releases every handle and the context. False when a driver call did not end
  // before `deadline`; the thread is left alone then, and the process has to end.
  bool stop(Nanos deadline);

 private:
  void enqueue(std::function<void()> command);
  void run(std::promise<Result<Measure>> started);
  Result<void> enter_context();
  Measure take_measure();
  Result<int> create_now(ChunkId chunk, Bytes bytes, Bytes headroom, bool clear);
  Result<void> clear_now(ChunkId chunk);
  Result<int> export_now(ChunkId chunk);
  void release_everything();

  struct Backing {
    CUmemGenericAllocationHandle handle;
    Bytes bytes;
  };

  // Constant after construction.
  const Driver& driver_;
  const CUdevice device_;
  const Post post_;

  // Shared by both threads, under the mutex.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  bool ended_ = false;

  // The actor thread's own.
  CUcontext context_ = nullptr;
  std::unordered_map<ChunkId, Backing> backings_;
  Bytes backed_;

  std::thread thread_;
};

}  // namespace vramd
