// Address space and mappings as transactions: a call either does everything or leaves everything as it was.
#pragma once

#include <cstddef>
#include <utility>

#include "allocator/driver/driver.hpp"
#include "allocator/vmm/chunk.hpp"

namespace vramd {

// A range of device address space; freed at the end of its life, when nothing may be mapped in it any more.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : driver_(other.driver_), base_(std::exchange(other.base_, DevicePtr{})), size_(other.size_) {}
  Reservation& operator=(Reservation&& other) noexcept {
    if (this != &other) {
      free();
      driver_ = other.driver_;
      base_ = std::exchange(other.base_, DevicePtr{});
      size_ = other.size_;
    }
    return *this;
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() { free(); }

  // `size` is a multiple of kSmallChunk; the base is aligned to it.
  static Result<Reservation> reserve(const Driver& driver, Bytes size) {
    CUdeviceptr base = 0;
    if (auto done = check(driver.mem_address_reserve(&base, size.value, kSmallChunk.value, 0, 0), "cuMemAddressReserve"); !done)
      return tl::unexpected(done.error());
    Reservation reservation;
    reservation.driver_ = &driver;
    reservation.base_ = DevicePtr{base};
    reservation.size_ = size;
    return reservation;
  }

  DevicePtr base() const { return base_; }
  Bytes size() const { return size_; }
  // Gives the range up without freeing it: for a range that still has a mapping which the driver refuses to remove.
  void leak() { base_ = DevicePtr{}; }

 private:
  void free() {
    if (base_ == DevicePtr{}) return;
    // Cannot fail for a range that we reserved and emptied; if it did, there would be nothing better to do than go on.
    (void)driver_->mem_address_free(address(base_), size_.value);
    base_ = DevicePtr{};
  }

  const Driver* driver_ = nullptr;
  DevicePtr base_{};
  Bytes size_;
};

// Which devices may reach a range: bit i = device i.
using AccessMask = std::uint32_t;

// One set-access call over [base, base + size), which must be fully mapped. Every device of `mask` gets `flags`.
inline Result<void> set_access(const Driver& driver, DevicePtr base, Bytes size, AccessMask mask,
                               CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  CUmemAccessDesc list[32];
  std::size_t count = 0;
  for (int device = 0; device < 32; ++device) {
    if ((mask >> device & 1) == 0) continue;
    list[count] = {};
    list[count].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    list[count].location.id = device;
    list[count].flags = flags;
    ++count;
  }
  return check(driver.mem_set_access(address(base), size.value, list, count), "cuMemSetAccess");
}

inline Result<void> unmap_chunk(const Driver& driver, DevicePtr at, const Chunk& chunk) {
  return check(driver.mem_unmap(address(at), chunk.size.value), "cuMemUnmap");
}

// Maps `chunks` one after the other from `base` on and grants access to all of them in one call. On failure nothing is undone:
// `mapped` tells how many are mapped, from the first on, and the caller unmaps them, which may fail for each by itself.
inline Result<void> map_chunks(const Driver& driver, DevicePtr base, const Chunk* chunks, std::size_t count, AccessMask mask,
                               std::size_t& mapped) {
  DevicePtr at = base;
  for (mapped = 0; mapped < count; ++mapped) {
    const Chunk& chunk = chunks[mapped];
    if (auto done = check(driver.mem_map(address(at), chunk.size.value, 0, chunk.handle, 0), "cuMemMap"); !done) return done;
    at = at + chunk.size;
  }
  return set_access(driver, base, at - base, mask);
}

}  // namespace vramd
