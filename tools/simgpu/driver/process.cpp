#include "tools/simgpu/driver/process.hpp"

#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "tools/simgpu/driver/calls.hpp"
#include "tools/simgpu/driver/engines.hpp"
#include "tools/simgpu/driver/linger.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {
namespace {

struct Process {
  Control control;
  ChunkTable chunks{control};
  Blocks blocks{chunks, address_space()};
  std::vector<std::uint32_t> visible;  // place by ordinal
};

Process& process() {
  static Process* const instance = new Process;
  return *instance;
}

std::string uuid_text(std::uint32_t place) {
  const CUuuid uuid = device_uuid(place);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

// The place that one item of CUDA_VISIBLE_DEVICES names (an index, or an unambiguous beginning of a UUID), or
// -1.
int parse_device(const std::string& item, std::uint32_t device_count) {
  int index = -1;
  const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), index);
  if (error == std::errc{} && end == item.data() + item.size()) {
    return index >= 0 && index < static_cast<int>(device_count) ? index : -1;
  }
  int found = -1;
  for (std::uint32_t place = 0; place < device_count && item.starts_with("GPU-"); ++place) {
    if (!uuid_text(place).starts_with(item)) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(place);
  }
  return found;
}

// As the driver does: devices after the first invalid item are invisible; a device named twice makes all
// invisible.
std::vector<std::uint32_t> visible_devices(std::uint32_t device_count) {
  std::vector<std::uint32_t> visible;
  if (!settings().visible_devices) {
    for (std::uint32_t place = 0; place < device_count; ++place) visible.push_back(place);
    return visible;
  }
  const std::string& list = *settings().visible_devices;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    std::string item = list.substr(at, end - at);
    std::erase(item, ' ');
    const int place = parse_device(item, device_count);
    if (place < 0) break;
    if (std::ranges::count(visible, static_cast<std::uint32_t>(place))) return {};
    visible.push_back(static_cast<std::uint32_t>(place));
    at = end + 1;
  }
  return visible;
}

// CUDA is unusable in a child forked after cuInit. The child still holds the slot's lock, and so the parent's
// memory.
void mark_forked() { process_state.store(ProcessState::forked); }

}  // namespace

CUresult initialise_process() {
  static std::mutex* const mutex = new std::mutex;
  if (process_state.load(std::memory_order_acquire) == ProcessState::forked) return CUDA_ERROR_NOT_INITIALIZED;
  const std::lock_guard lock(*mutex);
  if (process_state.load(std::memory_order_acquire) == ProcessState::ready) return CUDA_SUCCESS;
  static bool joined = false;
  if (!joined) {
    if (const CUresult result = process().control.open()) return result;
    joined = true;
    keep_working_after_death(process().control);
    ::pthread_atfork(nullptr, nullptr, mark_forked);
    process().visible = visible_devices(process().control.device_count());
  }
  if (process().visible.empty()) return CUDA_ERROR_NO_DEVICE;
  process_state.store(ProcessState::ready, std::memory_order_release);
  return CUDA_SUCCESS;
}

Control& control() { return process().control; }
ChunkTable& chunks() { return process().chunks; }
Blocks& blocks() { return process().blocks; }

int visible_device_count() { return static_cast<int>(process().visible.size()); }
bool valid_device(int ordinal) { return ordinal >= 0 && ordinal < visible_device_count(); }
std::uint32_t place_of(int ordinal) { return process().visible[static_cast<std::size_t>(ordinal)]; }

int ordinal_of(std::uint32_t place) {
  const auto& visible = process().visible;
  const auto found = std::ranges::find(visible, place);
  return found == visible.end() ? -1 : static_cast<int>(found - visible.begin());
}

CUuuid device_uuid(std::uint32_t place) {
  CUuuid uuid{};
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto mix = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const char c : settings().machine) mix(static_cast<unsigned char>(c));
  mix(static_cast<unsigned char>(place));
  std::memcpy(uuid.bytes, &hash, 8);
  mix(0x5a);
  std::memcpy(uuid.bytes + 8, &hash, 8);
  return uuid;
}

void sleep_micros(double micros) { sleep_for_nanos(static_cast<std::int64_t>(micros * 1000)); }

}  // namespace simgpu
