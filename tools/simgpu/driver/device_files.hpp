// The memory of a simulated machine: one sparse file per GPU and one for the host. Thread-safe: only system
// calls.
#pragma once

#include <cstdint>
#include <string>

#include "allocator/base/unique_fd.hpp"
#include "tools/simgpu/driver/control_layout.hpp"

namespace simgpu {

// Keeps the simulator's descriptors out of the way of programs that count on low numbers. -1 when `fd` is -1.
int move_descriptor_up(int fd);

class DeviceFiles {
 public:
  bool open(const std::string& folder, std::uint32_t device_count);

  // Maps a range at exactly `address` with no access. False when the kernel refuses.
  bool map(std::uint32_t place, std::uint64_t offset, std::uintptr_t address, std::uint64_t size) const;
  // Gives the range's pages back to the system; it reads as zeros afterwards.
  void punch(std::uint32_t place, std::uint64_t offset, std::uint64_t size) const;
  bool owns(int fd) const;
  void fill(std::uint32_t place, std::uint64_t offset, std::uint64_t size, unsigned char value) const;

 private:
  vramd::UniqueFd files_[kPlaces];
};

}  // namespace simgpu
