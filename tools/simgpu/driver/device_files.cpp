#include "tools/simgpu/driver/device_files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace simgpu {

int move_descriptor_up(int fd) {
  constexpr int kFirst = 700;
  if (fd < 0) return fd;
  int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, kFirst);
  if (moved < 0 && fd > STDERR_FILENO) return fd;  // the limit is below: stay
  // But never where a program without standard streams will write its output.
  if (moved < 0) moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(fd);
  return moved;
}

bool DeviceFiles::open(const std::string& folder, std::uint32_t device_count) {
  for (std::uint32_t place = 0; place < kPlaces; ++place) {
    if (place >= device_count && place != kHostPlace) continue;
    const std::string path = folder + (place == kHostPlace ? "/host0" : "/gpu" + std::to_string(place));
    vramd::UniqueFd file(move_descriptor_up(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)));
    if (!file) return false;
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return false;
    // tmpfs takes 2^60; other file systems end earlier, and then so does the offset space.
    for (int bits = 60; status.st_size == 0 && bits >= 43; --bits) {
      if (::ftruncate(file.get(), off_t{1} << bits) == 0) break;
    }
    files_[place] = std::move(file);
  }
  return true;
}

bool DeviceFiles::map(std::uint32_t place, std::uint64_t offset, std::uintptr_t address, std::uint64_t size) const {
  void* const wanted = reinterpret_cast<void*>(address);
  return ::mmap(wanted, size, PROT_NONE, MAP_SHARED | MAP_FIXED, files_[place].get(), static_cast<off_t>(offset)) == wanted;
}

void DeviceFiles::punch(std::uint32_t place, std::uint64_t offset, std::uint64_t size) const {
  ::fallocate(files_[place].get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(size));
}

bool DeviceFiles::owns(int fd) const {
  return std::ranges::any_of(files_, [fd](const vramd::UniqueFd& file) { return file.get() == fd; });
}

void DeviceFiles::fill(std::uint32_t place, std::uint64_t offset, std::uint64_t size, unsigned char value) const {
  void* const window = ::mmap(nullptr, size, PROT_WRITE, MAP_SHARED, files_[place].get(), static_cast<off_t>(offset));
  if (window == MAP_FAILED) return;
  std::memset(window, value, size);
  ::munmap(window, size);
}

}  // namespace simgpu
