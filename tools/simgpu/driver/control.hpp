// The shared side of a simulated machine: capacity, chunks, who holds them, which processes live.
// Thread-safe and process-safe: each call takes the control file's mutex.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/unique_fd.hpp"
#include "tools/simgpu/driver/control_layout.hpp"
#include "tools/simgpu/driver/device_files.hpp"
#include "tools/simgpu/driver/profiles.hpp"

namespace simgpu {

// Names a chunk across processes. A stale one (the chunk is gone) is told by its generation.
struct ChunkName {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  friend bool operator==(const ChunkName&, const ChunkName&) = default;
};

struct ChunkInfo {
  ChunkName name;
  std::uint32_t hold = 0;  // this process's right to it
  std::uint32_t place = 0;
  std::uint64_t offset = 0, size = 0;
  std::uint32_t handle_types = 0;
  std::uint32_t location_type = 0;
  bool rdma_capable = false;
};

class Control {
 public:
  // Joins the machine of settings(), creating it when it doesn't exist. On failure a message is on stderr.
  CUresult open();

  std::uint32_t device_count() const { return file_->device_count; }
  std::uint64_t machine_id() const { return file_->machine_id; }
  const Profile& profile() const { return *profile_; }
  std::atomic<std::int64_t>& engine(std::uint32_t place, Direction direction) {
    return file_->places[place].engine_free_at[static_cast<int>(direction)];
  }
  std::uint64_t capacity(int device) const { return file_->places[device].capacity; }
  const DeviceFiles& files() const { return files_; }

  // Bytes in use on a device by live processes.
  std::uint64_t used(int device);

  CUcomputemode compute_mode() const { return static_cast<CUcomputemode>(file_->compute_mode); }

  // Charges a context's overhead to this process. OUT_OF_MEMORY when it doesn't fit, DEVICE_UNAVAILABLE when the compute mode
  // forbids it.
  CUresult charge_context(int device, std::uint64_t bytes);
  void uncharge_context(int device, std::uint64_t bytes);

  // Managed memory that came to the device by a prefetch is charged while there is room; the answer is how much was.
  std::uint64_t charge_managed(int device, std::uint64_t bytes);
  void uncharge_managed(int device, std::uint64_t bytes);

  // Operations of streams under way in this process: a killed one leaves the number behind.
  std::atomic<std::uint32_t>& running() { return file_->slots[slot_].running; }

  // Events that processes share; nullptr: none is left, or the name is stale.
  EventEntry* create_event(ChunkName& name);
  EventEntry* find_event(ChunkName name);
  void destroy_event(ChunkName name);

  // The places and offsets of all chunks that a slot holds.
  std::vector<ChunkInfo> held_by(std::uint32_t slot);
  int life_descriptor() const { return life_.get(); }

  // `info` tells place, size and properties; name, offset and hold are filled in.
  CUresult create(ChunkInfo& info);
  // Adds this process to the holders of a chunk that somebody else created. INVALID_VALUE when it is gone.
  CUresult adopt(ChunkName name, ChunkInfo& info);
  void drop(std::uint32_t hold);

  // A new descriptor that names the chunk and keeps it alive like a holder, in whatever process it is. -1 on
  // failure.
  int export_token(ChunkName name);
  bool read_token(int fd, ChunkName& name) const;

  // The slot of this process, and whether the process of a slot lives.
  std::uint32_t own_slot() const { return slot_; }
  bool slot_lives(std::uint32_t slot);

 private:
  class Lock;

  bool create_machine();
  // Makes sure that the host has memory for this part of the control file: a shared page that can't be had is a SIGBUS.
  bool back(const void* begin, std::size_t size);
  bool take_slot();
  bool room(std::uint32_t place, std::uint64_t bytes) const;
  bool make_room(std::uint32_t place, std::uint64_t bytes);
  std::uint32_t new_chunk();
  std::uint32_t stale_chunk(const ChunkInfo& wanted);
  std::uint32_t new_hold(std::uint32_t chunk);
  void remove_hold(std::uint32_t hold);
  void chunk_unheld(std::uint32_t chunk);
  void free_chunk(std::uint32_t chunk);
  void sweep();
  void sweep_tokens();
  void bury(std::uint32_t slot);
  bool token_held(std::uint32_t chunk) const;
  std::string token_path(std::uint32_t chunk) const;
  std::string slot_path(std::uint32_t slot) const;
  void rebuild();

  ControlFile* file_ = nullptr;
  vramd::UniqueFd descriptor_;  // of the control file
  const Profile* profile_ = nullptr;
  DeviceFiles files_;
  std::uint32_t slot_ = 0;
  vramd::UniqueFd life_;  // locked slot file: inherited by forked children, which so keep this process's memory
};

}  // namespace simgpu
