// A driver table of fakes for tests of vmm and heap: bookkeeping of handles, reservations and mappings without memory.
// It is strict: a call that a GPU would punish fails the test at once. One instance per process (the table has no context).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

#include "allocator/driver/driver.hpp"
#include "allocator/vmm/chunk.hpp"

namespace vramd::testing {

struct FakeDriver {
  struct Mapped {
    std::uint64_t size;
    CUmemGenericAllocationHandle handle;
    std::uint32_t access = 0;
  };

  std::mutex mutex;
  std::uint64_t next_address = 1ull << 40;
  std::uint64_t next_handle = 1;
  std::map<std::uint64_t, std::uint64_t> reservations;  // base -> size
  std::map<std::uint64_t, Mapped> mappings;
  std::map<CUmemGenericAllocationHandle, std::uint64_t> handles;  // -> size
  std::set<CUmemGenericAllocationHandle> mapped_handles;
  std::map<std::string, int> calls;
  // Fault injection: the n-th call (1 = next) of a name fails once with a code.
  std::map<std::string, std::pair<int, CUresult>> faults;
  std::string crime;  // first misuse, empty when there was none

  static FakeDriver*& current() {
    static FakeDriver* instance = nullptr;
    return instance;
  }
  FakeDriver() { current() = this; }
  ~FakeDriver() { current() = nullptr; }

  CUresult enter(const std::string& name) {
    ++calls[name];
    auto fault = faults.find(name);
    if (fault == faults.end() || --fault->second.first > 0) return CUDA_SUCCESS;
    const CUresult code = fault->second.second;
    faults.erase(fault);
    return code;
  }
  CUresult guilty(const std::string& what) {
    if (crime.empty()) crime = what;
    return CUDA_ERROR_INVALID_VALUE;
  }

  static Driver table() {
    Driver driver;
    driver.mem_address_reserve = [](CUdeviceptr* out, size_t size, size_t, CUdeviceptr, unsigned long long) {
      FakeDriver& d = *current();
      std::lock_guard lock(d.mutex);
      if (auto code = d.enter("reserve")) return code;
      *out = d.next_address;
      d.reservations[d.next_address] = size;
      d.next_address += size + (64ull << 20);
      return CUDA_SUCCESS;
    };
    driver.mem_address_free = [](CUdeviceptr base, size_t size) {
      FakeDriver& d = *current();
      std::lock_guard lock(d.mutex);
      if (auto code = d.enter("address_free")) return code;
      auto it = d.reservations.find(base);
      if (it == d.reservations.end() || it->second != size) return d.guilty("address_free of what was not reserved");
      auto mapped = d.mappings.lower_bound(base);
      if (mapped != d.mappings.end() && mapped->first < base + size) return d.guilty("address_free with a mapping in it");
      d.reservations.erase(it);
      return CUDA_SUCCESS;
    };
    driver.mem_map = [](CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                        unsigned long long flags) {
      FakeDriver& d = *current();
      std::lock_guard lock(d.mutex);
      if (auto code = d.enter("map")) return code;
      if (offset != 0 || flags != 0) return d.guilty("map with offset or flags");
      if (!d.handles.contains(handle) || d.handles[handle] != size) return d.guilty("map of no handle or another size");
      if (!d.mapped_handles.insert(handle).second) return d.guilty("chunk mapped twice");
      auto next = d.mappings.lower_bound(at);
      if (next != d.mappings.end() && next->first < at + size) return d.guilty("map over a mapping");
      if (next != d.mappings.begin() && std::prev(next)->first + std::prev(next)->second.size > at)
        return d.guilty("map over a mapping");
      d.mappings[at] = {size, handle};
      return CUDA_SUCCESS;
    };
    driver.mem_unmap = [](CUdeviceptr at, size_t size) {
      FakeDriver& d = *current();
      std::lock_guard lock(d.mutex);
      if (auto code = d.enter("unmap")) return code;
      auto it = d.mappings.find(at);
      if (it == d.mappings.end() || it->second.size != size) return d.guilty("unmap of no whole mapping");
      d.mapped_handles.erase(it->second.handle);
      d.mappings.erase(it);
      return CUDA_SUCCESS;
    };
    driver.mem_set_access = [](CUdeviceptr at, size_t size, const CUmemAccessDesc* list, size_t count) {
      FakeDriver& d = *current();
      std::lock_guard lock(d.mutex);
      if (auto code = d.enter("set_access")) return code;
      for (std::uint64_t end = at + size; at < end;) {
        auto it = d.mappings.find(at);
        if (it == d.mappings.end()) return d.guilty("set_access over a gap");
        for (size_t i = 0; i < count; ++i) {
          const std::uint32_t bit = 1u << list[i].location.id;
          if (list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
            it->second.access &= ~bit;
          } else {
            it->second.access |= bit;
          }
        }
        at += it->second.size;
      }
      return CUDA_SUCCESS;
    };
    return driver;
  }
};

// A ChunkSource over FakeDriver with a capacity, which notices chunks given back twice or while mapped.
struct FakeSource {
  explicit FakeSource(FakeDriver& d, Bytes c = {1ull << 40}) : driver(d), capacity(c) {}

  FakeDriver& driver;
  Bytes capacity;
  Bytes out;
  std::uint64_t acquired = 0, returned = 0;

  Result<Chunk> acquire(int, Bytes size) {
    std::lock_guard lock(driver.mutex);
    if (auto code = driver.enter("acquire")) return failure(ErrorCode::driver, "acquire", code);
    if (out + size > capacity) return failure(ErrorCode::out_of_memory, "acquire");
    out += size;
    ++acquired;
    const auto handle = driver.next_handle++;
    driver.handles[handle] = size.value;
    return Chunk{handle, ChunkId{}, size};
  }
  Bytes available(int) {
    std::lock_guard lock(driver.mutex);
    return capacity - out;
  }
  void give_back(int, const Chunk* chunks, std::size_t count) {
    std::lock_guard lock(driver.mutex);
    for (std::size_t i = 0; i < count; ++i) {
      ++returned;
      if (driver.mapped_handles.contains(chunks[i].handle)) driver.guilty("give_back of a mapped chunk");
      if (driver.handles.erase(chunks[i].handle) == 0) driver.guilty("give_back of a chunk that is not out");
      out -= chunks[i].size;
    }
  }
};

}  // namespace vramd::testing
