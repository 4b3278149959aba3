#include "tools/simgpu/driver/control.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {
namespace {

using vramd::UniqueFd;

struct Token {
  std::uint64_t magic;
  std::uint64_t machine_id;
  ChunkName name;
};
constexpr std::uint64_t kTokenMagic = 0x6e65'6b6f'746d'6973;  // "simtoken"

bool initialise_mutex(pthread_mutex_t* mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  const bool done = pthread_mutex_init(mutex, &attributes) == 0;
  pthread_mutexattr_destroy(&attributes);
  return done;
}

CUresult refuse(const std::string& path, const char* what) {
  const char* advice = errno == EACCES ? "It belongs to another user: choose" : "Remove the folder, or choose";
  std::fprintf(stderr, "simgpu: %s: %s (%s). %s another one with SIM_DIR or SIM_NAME\n", path.c_str(), what,
               std::strerror(errno), advice);
  return CUDA_ERROR_OPERATING_SYSTEM;
}

// The machine keeps what it was made with. Who asks for something else is told, and gets what is there.
void compare_with_wishes(const std::string& folder, const char* profile, std::uint32_t devices, std::uint64_t capacity) {
  const Settings& s = settings();
  const bool differs = (std::getenv("SIM_PROFILE") && s.profile != profile) ||
                       (std::getenv("SIM_DEVICES") && static_cast<std::uint32_t>(s.devices) != devices) ||
                       (s.capacity && *s.capacity != capacity);
  if (!differs) return;
  std::fprintf(stderr,
               "simgpu: %s exists already, with %u of %s and %llu MiB each; what the environment asks for is ignored. Remove "
               "the folder, or choose another one with SIM_DIR or SIM_NAME\n",
               folder.c_str(), devices, profile, static_cast<unsigned long long>(capacity >> 20));
}

// An exclusive lock for the time of a scope. It must be given back by hand: a mapping of the file keeps it
// locked otherwise.
class FileLock {
 public:
  explicit FileLock(int fd) : fd_(fd) { ::flock(fd_, LOCK_EX); }
  ~FileLock() { ::flock(fd_, LOCK_UN); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  const int fd_;
};

// True when no open file description holds a lock on the file: everybody who had it is gone.
bool abandoned(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  // Without a descriptor or memory to look with nothing is known, and then everybody lives.
  return file ? ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 : errno == ENOENT;
}

}  // namespace

class Control::Lock {
 public:
  explicit Lock(Control& control) : file_(*control.file_) {
    if (pthread_mutex_lock(&file_.mutex) != EOWNERDEAD) return;
    control.rebuild();
    pthread_mutex_consistent(&file_.mutex);
  }
  ~Lock() { pthread_mutex_unlock(&file_.mutex); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  ControlFile& file_;
};

CUresult Control::open() {
  const std::string& folder = settings().folder;
  if (!find_profile(settings().profile)) {
    std::fprintf(stderr, "simgpu: SIM_PROFILE=\"%s\" is not known; known profiles: %s\n", settings().profile.c_str(),
                 profile_names().c_str());
    return CUDA_ERROR_NO_DEVICE;
  }
  ::mkdir(folder.c_str(), 0700);
  ::mkdir((folder + "/slots").c_str(), 0700);
  ::mkdir((folder + "/tokens").c_str(), 0700);
  const std::string path = folder + "/control";
  UniqueFd fd(move_descriptor_up(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)));
  if (!fd) return refuse(path, "can't be opened");
  const FileLock one_creator(fd.get());
  if (::ftruncate(fd.get(), sizeof(ControlFile)) != 0) return refuse(path, "can't be sized");
  void* const memory = ::mmap(nullptr, sizeof(ControlFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return refuse(path, "can't be mapped");
  file_ = static_cast<ControlFile*>(memory);
  descriptor_.reset(::fcntl(fd.get(), F_DUPFD_CLOEXEC, fd.get()));
  if (!back(file_, offsetof(ControlFile, chunks))) return refuse(path, "the file system has no room for it");

  if (file_->magic != kControlMagic && !create_machine()) return CUDA_ERROR_NO_DEVICE;
  if (file_->size != sizeof(ControlFile)) {
    errno = EINVAL;
    return refuse(path, "was made by another build of the simulator");
  }
  profile_ = find_profile(file_->profile);
  if (!profile_) return CUDA_ERROR_NO_DEVICE;
  compare_with_wishes(folder, file_->profile, file_->device_count, file_->places[0].capacity);
  if (!files_.open(folder, file_->device_count)) return refuse(folder, "a device file can't be opened");
  if (!take_slot()) return refuse(folder, "all 256 process slots are taken");
  return CUDA_SUCCESS;
}

bool Control::create_machine() {
  const Settings& s = settings();
  const Profile* const profile = find_profile(s.profile);
  std::memset(static_cast<void*>(file_), 0, offsetof(ControlFile, chunks));
  if (!initialise_mutex(&file_->mutex)) return false;
  if (::getrandom(&file_->machine_id, sizeof file_->machine_id, 0) < 0) return false;
  file_->size = sizeof(ControlFile);
  file_->device_count = static_cast<std::uint32_t>(s.devices);
  std::snprintf(file_->profile, sizeof file_->profile, "%s", profile->name);
  for (int device = 0; device < s.devices; ++device) {
    file_->places[device].capacity = s.capacity.value_or(profile->capacity_mib << 20);
  }
  file_->compute_mode = static_cast<std::uint32_t>(s.compute_mode);
  file_->chunk_limit = file_->hold_limit = 1;
  file_->magic = kControlMagic;
  return true;
}

bool Control::back(const void* begin, std::size_t size) {
  const auto offset = static_cast<const char*>(begin) - reinterpret_cast<const char*>(file_);
  return ::fallocate(descriptor_.get(), 0, offset, static_cast<off_t>(size)) == 0 || errno == EOPNOTSUPP;
}

bool Control::take_slot() {
  const Lock lock(*this);
  sweep();
  for (std::uint32_t i = 0; i < kMaxSlots; ++i) {
    SlotEntry& slot = file_->slots[i];
    if (slot.state == EntryState::used) continue;
    UniqueFd file(move_descriptor_up(::open(slot_path(i).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)));
    if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::memset(static_cast<void*>(&slot), 0, sizeof slot);
    slot.pid = ::getpid();
    slot.state = EntryState::used;
    slot_ = i;
    life_ = std::move(file);
    return true;
  }
  return false;
}

std::string Control::slot_path(std::uint32_t slot) const { return settings().folder + "/slots/" + std::to_string(slot); }

std::string Control::token_path(std::uint32_t chunk) const {
  return settings().folder + "/tokens/" + std::to_string(chunk) + "." + std::to_string(file_->chunks[chunk].generation);
}

std::uint64_t Control::used(int device) {
  const Lock lock(*this);
  sweep();
  return file_->places[device].used;
}

bool Control::room(std::uint32_t place, std::uint64_t bytes) const {
  const PlaceEntry& entry = file_->places[place];
  return place == kHostPlace || (bytes <= entry.capacity && entry.used <= entry.capacity - bytes);
}

// The memory of dead processes counts as free: nobody is refused because of it.
bool Control::make_room(std::uint32_t place, std::uint64_t bytes) {
  if (room(place, bytes)) return true;
  sweep();
  return room(place, bytes);
}

CUresult Control::charge_context(int device, std::uint64_t bytes) {
  const Lock lock(*this);
  const auto place = static_cast<std::uint32_t>(device);
  if (compute_mode() == CU_COMPUTEMODE_PROHIBITED) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (compute_mode() == CU_COMPUTEMODE_EXCLUSIVE_PROCESS) {
    sweep();
    for (std::uint32_t i = 0; i < kMaxSlots; ++i) {
      const SlotEntry& slot = file_->slots[i];
      if (i != slot_ && slot.state == EntryState::used && slot.contexts[device] != 0) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    }
  }
  if (!make_room(place, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  file_->slots[slot_].contexts[device]++;
  file_->slots[slot_].context_bytes[device] += bytes;
  file_->places[place].used += bytes;
  return CUDA_SUCCESS;
}

void Control::uncharge_context(int device, std::uint64_t bytes) {
  const Lock lock(*this);
  file_->slots[slot_].contexts[device]--;
  file_->slots[slot_].context_bytes[device] -= bytes;
  file_->places[device].used -= bytes;
}

std::uint64_t Control::charge_managed(int device, std::uint64_t bytes) {
  const Lock lock(*this);
  PlaceEntry& place = file_->places[device];
  make_room(static_cast<std::uint32_t>(device), bytes);
  const std::uint64_t charged = std::min(bytes, place.capacity - std::min(place.capacity, place.used));
  file_->slots[slot_].managed_bytes[device] += charged;
  place.used += charged;
  return charged;
}

void Control::uncharge_managed(int device, std::uint64_t bytes) {
  const Lock lock(*this);
  file_->slots[slot_].managed_bytes[device] -= bytes;
  file_->places[device].used -= bytes;
}

EventEntry* Control::create_event(ChunkName& name) {
  const Lock lock(*this);
  for (std::uint32_t i = 0; i < kMaxEvents; ++i) {
    EventEntry& event = file_->events[i];
    if (event.state == EntryState::used && file_->slots[event.slot].state == EntryState::used) continue;
    event.generation++;
    event.slot = slot_;
    event.recorder.store(slot_);
    event.recorded.store(0);
    event.completed.store(0);
    event.state = EntryState::used;
    name = {i, event.generation};
    return &event;
  }
  return nullptr;
}

EventEntry* Control::find_event(ChunkName name) {
  if (name.index >= kMaxEvents) return nullptr;
  EventEntry& event = file_->events[name.index];
  return event.state == EntryState::used && event.generation == name.generation ? &event : nullptr;
}

void Control::destroy_event(ChunkName name) {
  const Lock lock(*this);
  if (EventEntry* const event = find_event(name)) event->state = EntryState::free;
}

std::vector<ChunkInfo> Control::held_by(std::uint32_t slot) {
  const Lock lock(*this);
  std::vector<ChunkInfo> held;
  for (std::uint32_t hold = file_->slots[slot].first_hold; hold; hold = file_->holds[hold].next) {
    const ChunkEntry& chunk = file_->chunks[file_->holds[hold].chunk];
    ChunkInfo info;
    info.place = chunk.place;
    info.offset = chunk.offset;
    info.size = chunk.size;
    held.push_back(info);
  }
  return held;
}

std::uint32_t Control::new_chunk() {
  std::uint32_t index = file_->free_chunks;
  if (index) {
    file_->free_chunks = file_->chunks[index].next;
  } else if (file_->chunk_limit < kMaxChunks && back(&file_->chunks[file_->chunk_limit], sizeof(ChunkEntry))) {
    index = file_->chunk_limit++;
  }
  return index;
}

std::uint32_t Control::new_hold(std::uint32_t chunk) {
  std::uint32_t index = file_->free_holds;
  if (index) {
    file_->free_holds = file_->holds[index].next;
  } else if (file_->hold_limit < kMaxHolds && back(&file_->holds[file_->hold_limit], sizeof(HoldEntry))) {
    index = file_->hold_limit++;
  } else {
    return 0;
  }
  HoldEntry& hold = file_->holds[index];
  SlotEntry& slot = file_->slots[slot_];
  hold = {EntryState::free, slot_, chunk, slot.first_hold, 0};
  if (slot.first_hold) file_->holds[slot.first_hold].previous = index;
  slot.first_hold = index;
  file_->chunks[chunk].holders++;
  hold.state = EntryState::used;
  return index;
}

// A released chunk of this place and size, taken out of the list; 0 = there is none.
std::uint32_t Control::stale_chunk(const ChunkInfo& wanted) {
  for (std::uint32_t* at = &file_->free_chunks; *at != 0; at = &file_->chunks[*at].next) {
    const ChunkEntry& chunk = file_->chunks[*at];
    if (chunk.place != wanted.place || chunk.size != wanted.size) continue;
    const std::uint32_t index = *at;
    *at = chunk.next;
    return index;
  }
  return 0;
}

CUresult Control::create(ChunkInfo& info) {
  const Lock lock(*this);
  PlaceEntry& place = file_->places[info.place];
  if (!make_room(info.place, info.size)) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint32_t again = settings().stale ? stale_chunk(info) : 0;
  const std::uint32_t index = again != 0 ? again : new_chunk();
  if (!index) return CUDA_ERROR_OUT_OF_MEMORY;
  ChunkEntry& chunk = file_->chunks[index];
  const std::uint64_t offset = again != 0 ? chunk.offset : place.next_offset;
  const std::uint32_t generation = chunk.generation + 1;
  chunk = {.state = EntryState::free,
           .generation = generation,
           .offset = offset,
           .size = info.size,
           .place = info.place,
           .holders = 0,
           .handle_types = info.handle_types,
           .location_type = info.location_type,
           .rdma_capable = info.rdma_capable,
           .exported = 0,
           .next = 0,
           .listed = 0};
  const std::uint32_t hold = new_hold(index);
  if (!hold) {
    chunk.next = file_->free_chunks;
    file_->free_chunks = index;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (again == 0) place.next_offset += info.size;
  place.used += info.size;
  chunk.state = EntryState::used;
  info.name = {index, generation};
  info.hold = hold;
  info.offset = chunk.offset;
  return CUDA_SUCCESS;
}

CUresult Control::adopt(ChunkName name, ChunkInfo& info) {
  const Lock lock(*this);
  if (name.index == 0 || name.index >= file_->chunk_limit) return CUDA_ERROR_INVALID_VALUE;
  const ChunkEntry& chunk = file_->chunks[name.index];
  if (chunk.state != EntryState::used || chunk.generation != name.generation) return CUDA_ERROR_INVALID_VALUE;
  const std::uint32_t hold = new_hold(name.index);
  if (!hold) return CUDA_ERROR_OUT_OF_MEMORY;
  info = {name, hold, chunk.place, chunk.offset, chunk.size, chunk.handle_types, chunk.location_type, chunk.rdma_capable != 0};
  return CUDA_SUCCESS;
}

void Control::drop(std::uint32_t hold) {
  const Lock lock(*this);
  remove_hold(hold);
}

void Control::remove_hold(std::uint32_t index) {
  HoldEntry& hold = file_->holds[index];
  hold.state = EntryState::free;
  if (hold.previous) {
    file_->holds[hold.previous].next = hold.next;
  } else {
    file_->slots[hold.slot].first_hold = hold.next;
  }
  if (hold.next) file_->holds[hold.next].previous = hold.previous;
  const std::uint32_t chunk = hold.chunk;
  hold.next = file_->free_holds;
  file_->free_holds = index;
  if (--file_->chunks[chunk].holders == 0) chunk_unheld(chunk);
}

void Control::chunk_unheld(std::uint32_t index) {
  ChunkEntry& chunk = file_->chunks[index];
  if (chunk.listed) return;  // the next sweep looks at it
  if (!chunk.exported || !token_held(index)) return free_chunk(index);
  chunk.listed = 1;
  chunk.next = file_->token_only_chunks;
  file_->token_only_chunks = index;
}

void Control::free_chunk(std::uint32_t index) {
  ChunkEntry& chunk = file_->chunks[index];
  if (chunk.exported) ::unlink(token_path(index).c_str());
  if (!settings().stale) files_.punch(chunk.place, chunk.offset, chunk.size);
  chunk.state = EntryState::free;
  file_->places[chunk.place].used -= chunk.size;
  chunk.next = file_->free_chunks;
  file_->free_chunks = index;
}

bool Control::token_held(std::uint32_t chunk) const { return !abandoned(token_path(chunk)); }

void Control::sweep() {
  for (std::uint32_t i = 0; i < kMaxSlots; ++i) {
    const bool own = life_ && i == slot_;
    if (file_->slots[i].state == EntryState::used && !own && abandoned(slot_path(i))) bury(i);
  }
  sweep_tokens();
}

void Control::sweep_tokens() {
  std::uint32_t chunk = std::exchange(file_->token_only_chunks, 0);
  while (chunk) {
    const std::uint32_t next = file_->chunks[chunk].next;
    file_->chunks[chunk].listed = 0;
    if (file_->chunks[chunk].holders == 0) chunk_unheld(chunk);  // a holder since: an importer took it over
    chunk = next;
  }
}

void Control::bury(std::uint32_t index) {
  SlotEntry& slot = file_->slots[index];
  while (slot.first_hold) remove_hold(slot.first_hold);
  for (int device = 0; device < kMaxDevices; ++device) {
    file_->places[device].used -= slot.context_bytes[device] + slot.managed_bytes[device];
    slot.context_bytes[device] = slot.managed_bytes[device] = 0;
  }
  slot.state = EntryState::free;
}

bool Control::slot_lives(std::uint32_t slot) {
  const Lock lock(*this);
  return slot < kMaxSlots && file_->slots[slot].state == EntryState::used && (slot == slot_ || !abandoned(slot_path(slot)));
}

int Control::export_token(ChunkName name) {
  const Lock lock(*this);
  ChunkEntry& chunk = file_->chunks[name.index];
  UniqueFd file(::open(token_path(name.index).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const Token token{kTokenMagic, file_->machine_id, name};
  if (!file || ::flock(file.get(), LOCK_SH | LOCK_NB) != 0) return -1;
  if (::pwrite(file.get(), &token, sizeof token, 0) != static_cast<ssize_t>(sizeof token)) return -1;
  chunk.exported = 1;
  return file.release();
}

bool Control::read_token(int fd, ChunkName& name) const {
  Token token{};
  if (::pread(fd, &token, sizeof token, 0) != static_cast<ssize_t>(sizeof token)) return false;
  if (token.magic != kTokenMagic || token.machine_id != file_->machine_id) return false;
  name = token.name;
  return true;
}

// A process died inside the lock: derive lists, counts and sums again from the states.
void Control::rebuild() {
  for (PlaceEntry& place : file_->places) place.used = 0;
  for (SlotEntry& slot : file_->slots) {
    slot.first_hold = 0;
    if (slot.state != EntryState::used) continue;
    for (int device = 0; device < kMaxDevices; ++device)
      file_->places[device].used += slot.context_bytes[device] + slot.managed_bytes[device];
  }
  file_->free_chunks = file_->free_holds = file_->token_only_chunks = 0;
  for (std::uint32_t i = 1; i < file_->chunk_limit; ++i) {
    ChunkEntry& chunk = file_->chunks[i];
    chunk.holders = chunk.listed = 0;
    if (chunk.state == EntryState::used) {
      file_->places[chunk.place].used += chunk.size;
      PlaceEntry& place = file_->places[chunk.place];
      if (place.next_offset < chunk.offset + chunk.size) place.next_offset = chunk.offset + chunk.size;
    } else {
      chunk.next = file_->free_chunks;
      file_->free_chunks = i;
    }
  }
  for (std::uint32_t i = 1; i < file_->hold_limit; ++i) {
    HoldEntry& hold = file_->holds[i];
    const bool whole = hold.state == EntryState::used && file_->slots[hold.slot].state == EntryState::used &&
                       file_->chunks[hold.chunk].state == EntryState::used;
    if (!whole) {
      hold.state = EntryState::free;
      hold.next = file_->free_holds;
      file_->free_holds = i;
      continue;
    }
    SlotEntry& slot = file_->slots[hold.slot];
    hold.previous = 0;
    hold.next = slot.first_hold;
    if (slot.first_hold) file_->holds[slot.first_hold].previous = i;
    slot.first_hold = i;
    file_->chunks[hold.chunk].holders++;
  }
  for (std::uint32_t i = 1; i < file_->chunk_limit; ++i) {
    if (file_->chunks[i].state == EntryState::used && file_->chunks[i].holders == 0) chunk_unheld(i);
  }
}

}  // namespace simgpu
