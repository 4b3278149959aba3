#include "daemon/actor.hpp"

#include <chrono>

#include "allocator/base/clock.hpp"
#include "daemon/log.hpp"
#include "daemon/text.hpp"

namespace vramd {
namespace {

CUmemAllocationProp chunk_properties(CUdevice device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

}  // namespace

DeviceActor::DeviceActor(const Driver& driver, CUdevice device, Post post)
    : driver_(driver), device_(device), post_(std::move(post)) {}

DeviceActor::~DeviceActor() {
  // Normally stop() was called. A thread stuck in the driver cannot be joined; the process is about to end
  // then.
  if (thread_.joinable() && !stop(MonotonicClock{}.now() + seconds(2))) thread_.detach();
}

Result<Measure> DeviceActor::start() {
  std::promise<Result<Measure>> started;
  auto result = started.get_future();
  thread_ = std::thread([this, moved = std::move(started)]() mutable { run(std::move(moved)); });
  return result.get();
}

void DeviceActor::run(std::promise<Result<Measure>> started) {
  if (auto entered = enter_context(); !entered) {
    started.set_value(tl::unexpected(entered.error()));
  } else {
    started.set_value(take_measure());
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (stopping_) break;
      const auto command = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();  // no lock across a driver call
      command();
      lock.lock();
    }
    lock.unlock();
    release_everything();
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

Result<void> DeviceActor::enter_context() {
  if (auto ok = check(driver_.device_primary_ctx_retain(&context_, device_), "cuDevicePrimaryCtxRetain"); !ok) return ok;
  return check(driver_.ctx_set_current(context_), "cuCtxSetCurrent");
}

void DeviceActor::release_everything() {
  for (const auto& [chunk, backing] : backings_)
    if (auto ok = check(driver_.mem_release(backing.handle), "cuMemRelease"); !ok)
      log::error(text("cuMemRelease at the end: CUDA error ", ok.error().detail));
  backings_.clear();
  if (auto ok = check(driver_.device_primary_ctx_release(device_), "cuDevicePrimaryCtxRelease"); !ok)
    log::error(text("cuDevicePrimaryCtxRelease: CUDA error ", ok.error().detail));
}

Measure DeviceActor::take_measure() {
  std::size_t free = 0, total = 0;
  if (auto ok = check(driver_.mem_get_info(&free, &total), "cuMemGetInfo"); !ok)
    log::error(text("cuMemGetInfo: CUDA error ", ok.error().detail));
  return {{free}, backed_};
}

Result<int> DeviceActor::create_now(ChunkId chunk, Bytes bytes, Bytes headroom, bool clear) {
  if (take_measure().free < bytes + headroom) return failure(ErrorCode::out_of_memory, "pool.headroom");
  const CUmemAllocationProp properties = chunk_properties(device_);
  CUmemGenericAllocationHandle handle{};
  if (auto ok = check(driver_.mem_create(&handle, bytes.value, &properties, 0), "cuMemCreate"); !ok)
    return tl::unexpected(ok.error());
  backings_.emplace(chunk, Backing{handle, bytes});
  backed_ += bytes;
  const Result<void> cleared = clear ? clear_now(chunk) : Result<void>{};
  auto fd = cleared ? export_now(chunk) : tl::unexpected(cleared.error());
  if (!fd) {
    if (auto ok = check(driver_.mem_release(handle), "cuMemRelease"); !ok)
      log::error(text("cuMemRelease after a failed export: CUDA error ", ok.error().detail));
    backings_.erase(chunk);
    backed_ -= bytes;
  }
  return fd;
}

// In a mapping of its own, since a chunk has no address.
Result<void> DeviceActor::clear_now(ChunkId chunk) {
  const auto at = backings_.find(chunk);
  if (at == backings_.end()) return failure(ErrorCode::invalid_argument, "clearing a chunk that is gone");
  const std::size_t size = at->second.bytes.value;
  CUdeviceptr address = 0;
  if (auto ok = check(driver_.mem_address_reserve(&address, size, 0, 0, 0), "cuMemAddressReserve"); !ok) return ok;
  Result<void> result = check(driver_.mem_map(address, size, 0, at->second.handle, 0), "cuMemMap");
  if (result) {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device_;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    result = check(driver_.mem_set_access(address, size, &access, 1), "cuMemSetAccess");
    if (result) result = check(driver_.memset_d8(address, 0, size), "cuMemsetD8");
    if (result) result = check(driver_.ctx_synchronize(), "cuCtxSynchronize");
    if (auto ok = check(driver_.mem_unmap(address, size), "cuMemUnmap"); !ok && result) result = ok;
  }
  if (auto ok = check(driver_.mem_address_free(address, size), "cuMemAddressFree"); !ok && result) result = ok;
  return result;
}

Result<int> DeviceActor::export_now(ChunkId chunk) {
  const auto at = backings_.find(chunk);
  if (at == backings_.end()) return failure(ErrorCode::invalid_argument, "export of a chunk that is gone");
  int fd = -1;
  if (auto ok =
          check(driver_.mem_export_to_shareable_handle(&fd, at->second.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                "cuMemExportToShareableHandle");
      !ok)
    return tl::unexpected(ok.error());
  return fd;
}

void DeviceActor::clear(ChunkId chunk, std::function<void(Result<void>)> done) {
  enqueue([=, this, done = std::move(done)] { post_([done, result = clear_now(chunk)] { done(result); }); });
}

void DeviceActor::create(ChunkId chunk, Bytes bytes, Bytes headroom, bool clear, std::function<void(Created)> done) {
  enqueue([=, this, done = std::move(done)] {
    auto fd = create_now(chunk, bytes, headroom, clear);
    post_([done, result = Created{fd, take_measure()}] { done(result); });
  });
}

void DeviceActor::release(chunks::Releases releases, std::function<void(Released)> done) {
  enqueue([this, releases = std::move(releases), done = std::move(done)] {
    Bytes dirty;
    for (const chunks::Release& release : releases) {
      const auto at = backings_.find(release.chunk);
      if (at == backings_.end()) continue;  // never happens: the pool names each chunk once
      if (auto ok = check(driver_.mem_release(at->second.handle), "cuMemRelease"); !ok)
        log::error(
            text("cuMemRelease of chunk ", static_cast<std::uint64_t>(release.chunk), ": CUDA error ", ok.error().detail));
      if (release.dirty) dirty += at->second.bytes;
      backed_ -= at->second.bytes;
      backings_.erase(at);
    }
    post_([done, result = Released{dirty, take_measure()}] { done(result); });
  });
}

void DeviceActor::export_fd(ChunkId chunk, std::function<void(Result<int>)> done) {
  enqueue([=, this, done = std::move(done)] { post_([done, fd = export_now(chunk)] { done(fd); }); });
}

void DeviceActor::measure(std::function<void(Measure)> done) {
  enqueue([this, done = std::move(done)] { post_([done, result = take_measure()] { done(result); }); });
}

void DeviceActor::enqueue(std::function<void()> command) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(command));
  changed_.notify_all();
}

bool DeviceActor::stop(Nanos deadline) {
  if (!thread_.joinable()) return true;
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  const auto left = std::chrono::nanoseconds((deadline - MonotonicClock{}.now()).value);
  if (!changed_.wait_for(lock, left, [this] { return ended_; })) return false;
  lock.unlock();
  thread_.join();
  return true;
}

}  // namespace vramd
