// A GPU that is only bookkeeping: what the daemon's actor calls, with capacity, failures and lazily freed
// memory. One instance per process (the driver's table has no context). Any thread.
#pragma once

#include <fcntl.h>

#include <map>
#include <mutex>
#include <utility>

#include "allocator/base/units.hpp"
#include "allocator/driver/driver.hpp"

namespace vramd::testing {

class FakeGpu {
  static FakeGpu*& current() {
    static FakeGpu* instance = nullptr;
    return instance;
  }
  template <class F>
  auto with_lock(F&& f) const {
    const std::lock_guard lock(mutex_);
    return f();
  }

 public:
  explicit FakeGpu(Bytes capacity) : capacity_(capacity) { current() = this; }
  ~FakeGpu() { current() = nullptr; }

  // The next call of the kind fails with this code; CUDA_SUCCESS = none fails.
  void fail_next_create(CUresult code) {
    with_lock([&] { fail_create_ = code; });
  }
  void fail_next_fill(CUresult code) {
    with_lock([&] { fail_fill_ = code; });
  }
  Bytes cleared() const {
    return with_lock([&] { return cleared_; });
  }
  void fail_next_export(CUresult code) {
    with_lock([&] { fail_export_ = code; });
  }
  // While set, released memory is not given back: somebody else still holds it.
  void hold_released(bool hold) {
    with_lock([&] {
      hold_ = hold;
      if (!hold) held_ = {};
    });
  }
  Bytes free() const {
    return with_lock([&] { return free_locked(); });
  }
  std::size_t handles() const {
    return with_lock([&] { return handles_.size(); });
  }
  int contexts() const {
    return with_lock([&] { return contexts_; });
  }

  Driver table() const {
    Driver driver;
    driver.device_primary_ctx_retain = [](CUcontext* context, CUdevice) {
      return current()->with_lock([&] {
        ++current()->contexts_;
        *context = reinterpret_cast<CUcontext>(current());
        return CUDA_SUCCESS;
      });
    };
    driver.device_primary_ctx_release = [](CUdevice) {
      return current()->with_lock([&] { return --current()->contexts_, CUDA_SUCCESS; });
    };
    driver.ctx_set_current = [](CUcontext) { return CUDA_SUCCESS; };
    driver.mem_get_info = [](std::size_t* free, std::size_t* total) {
      *free = current()->free().value;
      *total = current()->capacity_.value;
      return CUDA_SUCCESS;
    };
    driver.mem_create = [](CUmemGenericAllocationHandle* handle, std::size_t size, const CUmemAllocationProp*,
                           unsigned long long) { return current()->create(handle, size); };
    // Mapping is for clearing alone: one address, and what is filled is counted.
    driver.mem_address_reserve = [](CUdeviceptr* at, std::size_t, std::size_t, CUdeviceptr, unsigned long long) {
      *at = 0x10000000;
      return CUDA_SUCCESS;
    };
    driver.mem_address_free = [](CUdeviceptr, std::size_t) { return CUDA_SUCCESS; };
    driver.mem_map = [](CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long) {
      return CUDA_SUCCESS;
    };
    driver.mem_set_access = [](CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) { return CUDA_SUCCESS; };
    driver.mem_unmap = [](CUdeviceptr, std::size_t) { return CUDA_SUCCESS; };
    driver.ctx_synchronize = [] { return CUDA_SUCCESS; };
    driver.memset_d8 = [](CUdeviceptr, unsigned char value, std::size_t size) {
      return current()->with_lock([&] {
        if (const CUresult code = std::exchange(current()->fail_fill_, CUDA_SUCCESS); code != CUDA_SUCCESS) return code;
        if (value == 0) current()->cleared_ += Bytes{size};
        return CUDA_SUCCESS;
      });
    };
    driver.mem_release = [](CUmemGenericAllocationHandle handle) { return current()->release(handle); };
    driver.mem_export_to_shareable_handle = [](void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType,
                                               unsigned long long) {
      return current()->export_handle(static_cast<int*>(out), handle);
    };
    return driver;
  }

 private:
  Bytes free_locked() const {
    Bytes used = held_;
    for (const auto& [handle, bytes] : handles_) used += bytes;
    return saturating_sub(capacity_, used);
  }
  CUresult create(CUmemGenericAllocationHandle* handle, std::size_t size) {
    return with_lock([&] {
      if (const CUresult code = std::exchange(fail_create_, CUDA_SUCCESS); code != CUDA_SUCCESS) return code;
      if (free_locked() < Bytes{size}) return CUDA_ERROR_OUT_OF_MEMORY;
      *handle = next_++;
      handles_[*handle] = {size};
      return CUDA_SUCCESS;
    });
  }
  CUresult release(CUmemGenericAllocationHandle handle) {
    return with_lock([&] {
      const auto at = handles_.find(handle);
      if (at == handles_.end()) return CUDA_ERROR_INVALID_VALUE;
      if (hold_) held_ += at->second;
      handles_.erase(at);
      return CUDA_SUCCESS;
    });
  }
  CUresult export_handle(int* fd, CUmemGenericAllocationHandle handle) {
    return with_lock([&] {
      if (const CUresult code = std::exchange(fail_export_, CUDA_SUCCESS); code != CUDA_SUCCESS) return code;
      if (handles_.count(handle) == 0) return CUDA_ERROR_INVALID_VALUE;
      *fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      return CUDA_SUCCESS;
    });
  }

  mutable std::mutex mutex_;
  Bytes capacity_, held_, cleared_;
  std::map<CUmemGenericAllocationHandle, Bytes> handles_;
  CUmemGenericAllocationHandle next_ = 1;
  int contexts_ = 0;
  bool hold_ = false;
  CUresult fail_create_ = CUDA_SUCCESS, fail_export_ = CUDA_SUCCESS, fail_fill_ = CUDA_SUCCESS;
};

}  // namespace vramd::testing
