#include "tools/simgpu/driver/address_space.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "tools/simgpu/driver/guard.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {
namespace {

constexpr int kReserveFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

std::uintptr_t try_at(std::uintptr_t hint, std::size_t size) {
  void* const wanted = reinterpret_cast<void*>(hint);
  void* const got = ::mmap(wanted, size, PROT_NONE, kReserveFlags | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == wanted) return hint;
  if (got != MAP_FAILED) ::munmap(got, size);
  return 0;
}

std::string hex(std::uintptr_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

}  // namespace

std::mutex& memory_mutex() {
  static std::mutex* const instance = new std::mutex;
  return *instance;
}

AddressSpace& address_space() {
  static AddressSpace* const instance = new AddressSpace;
  return *instance;
}

std::uintptr_t AddressSpace::reserve(std::size_t size, std::size_t alignment, std::uintptr_t hint) {
  std::uintptr_t base = hint != 0 && hint % alignment == 0 ? try_at(hint, size) : 0;
  if (base == 0) {
    if (size > SIZE_MAX - alignment) return 0;
    void* const area = ::mmap(nullptr, size + alignment, PROT_NONE, kReserveFlags, -1, 0);
    if (area == MAP_FAILED) return 0;
    const auto start = reinterpret_cast<std::uintptr_t>(area);
    base = (start + alignment - 1) / alignment * alignment;
    if (base > start) ::munmap(area, base - start);
    const std::size_t tail = start + alignment - base;
    if (tail > 0) ::munmap(reinterpret_cast<void*>(base + size), tail);
  }
  reservations_[base] = size;
  return base;
}

bool AddressSpace::release(std::uintptr_t base, std::size_t size) {
  const auto found = reservations_.find(base);
  if (found == reservations_.end() || found->second != size || first_overlap(base, base + size)) return false;
  ::munmap(reinterpret_cast<void*>(base), size);
  reservations_.erase(found);
  return true;
}

bool AddressSpace::blank(std::uintptr_t base, std::size_t size) {
  void* const wanted = reinterpret_cast<void*>(base);
  return ::mmap(wanted, size, PROT_NONE, kReserveFlags | MAP_FIXED, -1, 0) == wanted;
}

Range& AddressSpace::add(const Range& range) {
  Range& stored = ranges_[range.base];
  stored = range;
  stored.buffer_id = next_buffer_id_++;
  return stored;
}

Range* AddressSpace::find(std::uintptr_t address) {
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return nullptr;
  Range& range = std::prev(next)->second;
  return address < range.end() ? &range : nullptr;
}

Range* AddressSpace::find_base(std::uintptr_t base) {
  const auto found = ranges_.find(base);
  return found == ranges_.end() ? nullptr : &found->second;
}

Range* AddressSpace::first_overlap(std::uintptr_t begin, std::uintptr_t end) {
  if (Range* const range = find(begin)) return range;
  const auto next = ranges_.lower_bound(begin);
  return next != ranges_.end() && next->first < end ? &next->second : nullptr;
}

bool AddressSpace::reserved(std::uintptr_t begin, std::uintptr_t end) const {
  const auto next = reservations_.upper_bound(begin);
  if (next == reservations_.begin()) return false;
  const auto& [base, size] = *std::prev(next);
  return begin < base + size && end <= base + size;
}

bool AddressSpace::add_area(std::uintptr_t base, std::size_t size, int protection) {
  areas_[base] = {base, size, PROT_NONE, 0, 0};
  return set_protection(base, protection);
}

bool AddressSpace::set_protection(std::uintptr_t base, int protection) {
  const auto found = areas_.find(base);
  if (found == areas_.end()) return false;
  Area& area = found->second;
  area.protection = protection;
  return area.users != 0 || ::mprotect(reinterpret_cast<void*>(base), area.size, protection) == 0;
}

const Area* AddressSpace::find_area(std::uintptr_t address) {
  const auto next = areas_.upper_bound(address);
  if (next == areas_.begin()) return nullptr;
  const Area& area = std::prev(next)->second;
  return address - area.base < area.size ? &area : nullptr;
}

void AddressSpace::remove_area(std::uintptr_t base) {
  for (KernelRun* const run : kernel_runs()) run->forget(base);
  areas_.erase(base);
}

namespace {
// What the processor may do with an area now.
bool apply(const Area& area) {
  const int protection = area.writers != 0 ? PROT_READ | PROT_WRITE
                         : area.users != 0 ? area.protection | PROT_READ
                                           : area.protection;
  return ::mprotect(reinterpret_cast<void*>(area.base), area.size, protection) == 0;
}
}  // namespace

bool AddressSpace::open(std::uintptr_t base, bool write) {
  const auto found = areas_.find(base);
  if (found == areas_.end()) return false;
  Area& area = found->second;
  const bool change = area.users == 0 || (write && area.writers == 0);
  ++area.users;
  area.writers += write;
  if (!change || apply(area)) return true;
  --area.users;
  area.writers -= write;
  return false;
}

void AddressSpace::close(std::uintptr_t base, bool write) {
  const auto found = areas_.find(base);
  if (found == areas_.end() || found->second.users == 0) return;
  Area& area = found->second;
  --area.users;
  area.writers -= write;
  if (area.users == 0 || (write && area.writers == 0)) apply(area);
}

void AddressSpace::open_span(std::uintptr_t begin, std::uintptr_t end, bool write) {
  if (!settings().protect) return;
  for (std::uintptr_t at = begin; at < end;) {
    const Area* const area = find_area(at);
    if (!area) return;
    open(area->base, write);
    at = area->base + area->size;
  }
}

void AddressSpace::close_span(std::uintptr_t begin, std::uintptr_t end, bool write) {
  if (!settings().protect) return;
  for (std::uintptr_t at = begin; at < end;) {
    const Area* const area = find_area(at);
    if (!area) return;
    close(area->base, write);
    at = area->base + area->size;
  }
}

bool AddressSpace::permitted(const Touch& touch, int device) {
  std::uintptr_t at = touch.begin;
  while (at < touch.end) {
    const Range* const range = find(at);
    // Memory that the driver doesn't know is the program's own: fine for a host operand, unless it is an
    // empty reservation.
    if (!range) return at == touch.begin && !touch.device_typed && !reserved(at, at + 1);
    if (range->kind == RangeKind::mapping) {
      const auto wanted = touch.write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ;
      const int home = range->device >= 0 ? range->device : kHostAccess;
      // Copies across devices are staged by the driver: the right of the memory's own device is enough.
      const auto granted =
          std::max(range->access[static_cast<std::size_t>(device)], range->access[static_cast<std::size_t>(home)]);
      if ((granted & wanted) != wanted) return false;
    } else if (touch.end > range->end()) {
      return false;
    }
    at = range->end();
  }
  return true;
}

bool AddressSpace::begin_touching(Busy& busy, int device) {
  for (const Touch& touch : busy.touches) {
    if (!permitted(touch, device)) return false;
  }
  for (const Touch& touch : busy.touches) open_span(touch.begin, touch.end, touch.write);
  busy_.push_back(&busy);
  return true;
}

bool AddressSpace::end_touching(Busy& busy) {
  std::erase(busy_, &busy);
  for (const Touch& touch : busy.touches) close_span(touch.begin, touch.end, touch.write);
  if (busy.torn) untouched_.notify_all();
  return !busy.torn;
}

void AddressSpace::wait_untouched(std::unique_lock<std::mutex>& lock, std::uintptr_t begin, std::uintptr_t end,
                                  const char* call) {
  for (KernelRun* const run : kernel_runs()) {
    if (run->lose(begin, end)) misuse("memory taken away while a kernel uses it", std::string(call) + " of " + hex(begin));
  }
  const auto overlaps = [&](const Busy* busy) {
    return std::ranges::any_of(busy->touches, [&](const Touch& t) { return t.begin < end && begin < t.end; });
  };
  if (std::ranges::none_of(busy_, overlaps)) return;
  misuse("memory taken away while the GPU uses it", std::string(call) + " of " + hex(begin));
  for (Busy* const busy : busy_) busy->torn = busy->torn || overlaps(busy);
  untouched_.wait(lock, [&] { return std::ranges::none_of(busy_, overlaps); });
}

}  // namespace simgpu
