#include "shim/client/chunk_source.hpp"

#include <string.h>
#include <unistd.h>

#include <utility>

#include "allocator/base/clock.hpp"
#include "shim/client/log.hpp"

namespace vramd::shim {
namespace {

using protocol::Mode;
using protocol::Status;

std::uint64_t smaller(std::uint64_t a, std::uint64_t b) { return a < b ? a : b; }

void add(std::uint64_t& counter, std::uint64_t n) { __atomic_fetch_add(&counter, n, __ATOMIC_RELAXED); }
void subtract(std::uint64_t& counter, std::uint64_t n) { __atomic_fetch_sub(&counter, n, __ATOMIC_RELAXED); }
std::uint64_t load(const std::uint64_t& counter) { return __atomic_load_n(&counter, __ATOMIC_RELAXED); }

const char* name_of(Mode mode) {
  switch (mode) {
    case Mode::off: return "off";
    case Mode::observe: return "observe";
    default: return "pool";
  }
}

const char* name_of(protocol::Source decided) {
  switch (decided) {
    case protocol::Source::daemon: return "daemon";
    case protocol::Source::local: return "local, as the daemon decided";
    case protocol::Source::native: return "native";
    default: return "none";
  }
}

const char* reason(const Error& error) {
  switch (error.code) {
    case ErrorCode::disconnected: return "no daemon listens there";
    case ErrorCode::timeout: return "the daemon does not answer";
    case ErrorCode::invalid_argument: return "the socket path is too long";
    default: return error.what;
  }
}

const char* reason(Status refusal) {
  switch (refusal) {
    case Status::version_mismatch: return "the daemon speaks another protocol version; install the same release of both";
    case Status::too_many: return "the daemon has as many sessions as it takes; its limits hold";
    default: return "the daemon refused this session";
  }
}

CUmemAllocationProp local_properties(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

}  // namespace

Mode ChunkSourceOfProcess::introduce(int device_count) {
  device_count_ = device_count < kMaxDevices ? device_count : kMaxDevices;
  MutexLock lock(daemon_mutex_);
  hello_ = protocol::make<protocol::Hello>(0);
  if (line_.possible()) hello_.features = protocol::kFeatureLine;
  hello_.mode = settings_.mode;
  hello_.priority = settings_.priority;
  hello_.limit_bytes = settings_.limit_percent > 0 ? 0 : settings_.limit.value;
  memcpy(hello_.job, settings_.job, sizeof hello_.job);
  hello_.job[sizeof hello_.job - 1] = '\0';
  (void)driver_.driver_get_version(&hello_.driver_version);
  hello_.device_count = static_cast<std::uint32_t>(device_count_);
  for (int i = 0; i < device_count_; ++i) {
    CUuuid uuid{};
    (void)driver_.device_get_uuid(&uuid, i);
    memcpy(hello_.devices[i].bytes, uuid.bytes, sizeof uuid.bytes);
    std::size_t total = 0;
    (void)driver_.device_total_mem(&total, i);
    devices_[i].total = total;
    const Bytes wish = settings_.limit_of({total});
    if (wish > Bytes{0}) devices_[i].limit = devices_[i].environment_limit = wish.value;
  }

  const auto reply = connect(Connection::kDeadline);
  const Status status = reply ? reply->header.status : Status::ok;
  if (reply && status == Status::ok) {
    log(LogLevel::info, "mode %s, session %llu at %s", name_of(reply->mode), static_cast<unsigned long long>(reply->session),
        settings_.socket);
    return reply->mode;
  }
  Mode mode = settings_.mode == Mode::unset ? Mode::pool : settings_.mode;
  if (status == Status::too_many) mode = reply->mode;
  log(LogLevel::info, "mode %s, source local: %s (%s)", name_of(mode), reply ? reason(status) : reason(reply.error()),
      settings_.socket);
  return mode;
}

// Says hello and takes over what the daemon answers: limits, and what it does for each device.
Result<protocol::HelloReply> ChunkSourceOfProcess::connect(Nanos deadline) {
  int line[2];
  auto reply = connection_.open(settings_.socket, hello_, line, deadline);
  const Nanos now = MonotonicClock{}.now();
  next_attempt_ = now + pause_;
  const Status status = reply ? reply->header.status : Status::ok;
  if (!reply || (status != Status::ok && status != Status::too_many)) return reply;
  for (int i = 0; i < device_count_; ++i) {
    Device& device = devices_[i];
    const protocol::DeviceEntry& entry = reply->devices[i];
    if (entry.index != UINT32_MAX)
      __atomic_store_n(&device.limit, smaller(device.environment_limit, reply->limit_bytes[i]), __ATOMIC_RELAXED);
    __atomic_store_n(&device.daemon_index, entry.source == protocol::Source::none ? UINT32_MAX : entry.index, __ATOMIC_RELAXED);
    device.source = entry.source == protocol::Source::daemon ? protocol::Source::daemon : protocol::Source::local;
    if (status != Status::ok) continue;
    if (entry.index == UINT32_MAX)
      log(LogLevel::info, "device %d: source local, the daemon does not know this device", i);
    else
      log(LogLevel::info, "device %d: source %s", i, name_of(entry.source));
  }
  if (status != Status::ok) return reply;
  connected_at_ = now;
  ++lender_;
  if (line[0] >= 0) (void)line_.open(line[0], line[1]);
  enter_all_that_is_held();
  return reply;
}

// A daemon that we come to with memory: from before it started, or from a connection that was lost.
void ChunkSourceOfProcess::enter_all_that_is_held() {
  for (int i = 0; i < device_count_; ++i) {
    Device& device = devices_[i];
    device.outside += std::exchange(device.leased, 0);
    if (device.outside != 0) (void)charge(device, protocol::ChargeKind::kept, static_cast<std::int64_t>(device.outside));
  }
}

Nanos ChunkSourceOfProcess::longer(Nanos pause) const {
  const Nanos doubled{pause.value * 2};
  return doubled < pauses_.longest ? doubled : pauses_.longest;
}

void ChunkSourceOfProcess::recalled(const protocol::Recall& recall) {
  MutexLock lock(daemon_mutex_);
  auto done = protocol::make<protocol::Recalled>(recall.header.request);
  done.device = recall.device;
  tell(done);
}

int ChunkSourceOfProcess::device_of(std::uint32_t daemon_index) {
  MutexLock lock(daemon_mutex_);
  for (int i = 0; i < device_count_; ++i)
    if (devices_[i].daemon_index == daemon_index) return i;
  return -1;
}

void ChunkSourceOfProcess::note_loss() {
  line_.close();
  const Nanos now = MonotonicClock{}.now();
  // One that was lost soon after it was found will be again.
  pause_ = now - connected_at_ > pause_ ? pauses_.first : longer(pause_);
  next_attempt_ = now + pause_;
  log(told_of_loss_ ? LogLevel::info : LogLevel::warn,
      "the daemon is gone; this process goes on with memory of its own (source local)");
  told_of_loss_ = true;
}

void ChunkSourceOfProcess::reach_daemon() {
  if (connection_.connected() || left_ || MonotonicClock{}.now() < next_attempt_) return;
  pause_ = longer(pause_);
  const auto reply = connect(kRetryDeadline);
  if (!reply || reply->header.status != Status::ok) return;
  log(LogLevel::info, "the daemon is there: session %llu at %s", static_cast<unsigned long long>(reply->session),
      settings_.socket);
}

ChunkSourceOfProcess::Reach ChunkSourceOfProcess::reach(int device) {
  MutexLock lock(daemon_mutex_);
  reach_daemon();
  const bool known = known_to_daemon(devices_[device]);
  return {known, known && devices_[device].source == protocol::Source::daemon};
}

bool ChunkSourceOfProcess::ask_daemon(int device, protocol::MemoryInfoReply& info) {
  MutexLock lock(daemon_mutex_);
  reach_daemon();
  Device& d = devices_[device];
  if (!known_to_daemon(d)) return false;
  auto request = protocol::make<protocol::MemoryInfo>(0);
  request.device = d.daemon_index;
  auto reply = connection_.call<protocol::MemoryInfoReply>(request);
  if (!reply) note_loss();
  if (!reply || reply->header.status != Status::ok) return false;
  info = *reply;
  __atomic_store_n(&d.limit, smaller(d.environment_limit, info.limit_bytes), __ATOMIC_RELAXED);
  return true;
}

bool ChunkSourceOfProcess::out_of_reach(int device, Bytes size) {
  const Device& d = devices_[device];
  if (size.value > d.total) return true;
  if (size.value <= load(d.limit)) return false;
  protocol::MemoryInfoReply info;
  (void)ask_daemon(device, info);
  if (size.value <= load(d.limit)) return false;
  {
    MutexLock lock(daemon_mutex_);
    (void)charge(devices_[device], protocol::ChargeKind::question, static_cast<std::int64_t>(size.value));
  }
  tell_of_limit(device, size);
  return true;
}

// Once: a job that meets its limit mostly ends, and one that goes on tries often.
void ChunkSourceOfProcess::tell_of_limit(int device, Bytes size) {
  if (__atomic_exchange_n(&told_of_limit_, true, __ATOMIC_RELAXED)) return;
  const Device& d = devices_[device];
  const std::uint64_t limit = load(d.limit);
  log(LogLevel::warn, "device %d: out of memory by the limit of %llu MiB: %llu MiB more asked for, %llu MiB held%s", device,
      static_cast<unsigned long long>(limit >> 20), static_cast<unsigned long long>(size.value >> 20),
      static_cast<unsigned long long>(load(d.held) >> 20), limit == UINT64_MAX ? " (a limit shared with other jobs)" : "");
}

// Counted before it exists, so that threads at once cannot pass the limit together.
bool ChunkSourceOfProcess::within_bound(Device& device, Bytes size, std::uint64_t bound) {
  add(device.held, size.value);
  if (load(device.held) <= bound) return true;
  subtract(device.held, size.value);
  return false;
}

Result<Chunk> ChunkSourceOfProcess::acquire(int device, Bytes size) {
  Device& d = devices_[device];
  const bool lends = reach(device).lends;
  // The daemon checks its own limit, which may have changed; here only the environment's wish counts while it is there.
  if (!within_bound(d, size, lends ? d.environment_limit : load(d.limit))) {
    tell_of_limit(device, size);
    return failure(ErrorCode::over_limit, "limit of the session");
  }
  auto chunk = lends ? acquire_from_daemon(device, size) : acquire_local(device, size);
  if (!chunk && chunk.error().code == ErrorCode::disconnected) chunk = acquire_local(device, size);
  if (chunk) return chunk;
  if (chunk.error().code == ErrorCode::over_limit) {
    protocol::MemoryInfoReply now;
    (void)ask_daemon(device, now);  // the limit may be another one by now
    tell_of_limit(device, size);
  }
  subtract(d.held, size.value);
  return chunk;
}

Bytes ChunkSourceOfProcess::available(int device) {
  protocol::MemoryInfoReply info;
  if (ask_daemon(device, info)) return {info.free_bytes};
  std::size_t free = 0, total = 0;
  return {driver_.mem_get_info(&free, &total) == CUDA_SUCCESS ? free : 0};
}

Result<protocol::GrantReply> ChunkSourceOfProcess::ask_for_chunk(int device, Bytes size, Chunk& chunk, int& fd) {
  MutexLock lock(daemon_mutex_);
  Device& d = devices_[device];
  if (!connection_.connected()) return failure(ErrorCode::disconnected, "no daemon");  // lost since we looked
  auto request = protocol::make<protocol::Grant>(0);
  request.device = d.daemon_index;
  request.bytes = size.value;
  auto reply = connection_.call<protocol::GrantReply>(request, &fd);
  if (!reply) {
    note_loss();
    return failure(ErrorCode::disconnected, reply.error().what);
  }
  if (reply->header.status == Status::ok) {
    chunk.id = ChunkId{reply->chunk};
    chunk.size = {reply->bytes};
    chunk.lender = lender_;
    d.leased += reply->bytes;
  }
  return reply;
}

Result<Chunk> ChunkSourceOfProcess::acquire_from_daemon(int device, Bytes size) {
  Chunk chunk;
  int fd = -1;
  const auto reply = ask_for_chunk(device, size, chunk, fd);
  if (!reply) return tl::unexpected(reply.error());
  switch (reply->header.status) {
    case Status::ok: break;
    case Status::out_of_memory: return failure(ErrorCode::out_of_memory, "the daemon's pool");
    case Status::over_limit: return failure(ErrorCode::over_limit, "limit of the policy");
    default: return failure(ErrorCode::protocol, "grant refused", static_cast<int>(reply->header.status));
  }
  Result<void> imported = failure(ErrorCode::protocol, "grant without a descriptor");
  if (fd >= 0) {
    imported =
        check(driver_.mem_import_from_shareable_handle(&chunk.handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              "cuMemImportFromShareableHandle");
    protocol::close_descriptor(fd);
  }
  if (!imported || chunk.size != size) {
    // Given back without having been acknowledged: the daemon lends it to nobody else.
    if (imported) (void)driver_.mem_release(chunk.handle);
    account_returned(device, &chunk, 1);
    return imported ? failure(ErrorCode::protocol, "grant of another size") : tl::unexpected(imported.error());
  }
  {
    MutexLock lock(daemon_mutex_);
    auto received = protocol::make<protocol::Acknowledge>(0);
    received.chunk = reply->chunk;
    if (chunk.lender == lender_) tell(received);
  }
  add(counters_.granted, 1);
  if ((reply->flags & protocol::kGrantFresh) == 0) add(counters_.recycled, 1);
  return chunk;
}

Result<Chunk> ChunkSourceOfProcess::acquire_local(int device, Bytes size) {
  if (auto allowed = account(device, protocol::ChargeKind::local_chunk, static_cast<std::int64_t>(size.value)); !allowed)
    return tl::unexpected(allowed.error());
  Chunk chunk;
  chunk.size = size;
  const CUmemAllocationProp properties = local_properties(device);
  if (auto created = check(driver_.mem_create(&chunk.handle, size.value, &properties, 0), "cuMemCreate"); !created) {
    (void)account(device, protocol::ChargeKind::local_chunk, -static_cast<std::int64_t>(size.value));
    return tl::unexpected(created.error());
  }
  add(counters_.created, 1);
  return chunk;
}

void ChunkSourceOfProcess::give_back(int device, const Chunk* chunks, std::size_t count) {
  Chunk released[protocol::kMaxChunksPerMessage];
  std::size_t waiting = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Chunk& chunk = chunks[i];
    if (auto done = check(driver_.mem_release(chunk.handle), "cuMemRelease"); !done) {
      // The bytes stay ours and stay counted: nobody else may be told that they are free.
      log(LogLevel::warn, "cuMemRelease failed with CUresult %d; %llu bytes stay with this process", done.error().detail,
          static_cast<unsigned long long>(chunk.size.value));
      continue;
    }
    add(counters_.returned, 1);
    released[waiting++] = chunk;
    if (waiting == protocol::kMaxChunksPerMessage) account_returned(device, released, std::exchange(waiting, 0));
    subtract(devices_[device].held, chunk.size.value);
  }
  if (waiting != 0) account_returned(device, released, waiting);
}

void ChunkSourceOfProcess::account_returned(int device, const Chunk* chunks, std::size_t count) {
  MutexLock lock(daemon_mutex_);
  Device& d = devices_[device];
  auto back = protocol::make<protocol::GiveBack>(0);
  std::uint64_t leased = 0, outside = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_lease = chunks[i].id != ChunkId{} && chunks[i].lender == lender_;
    (is_lease ? leased : outside) += chunks[i].size.value;
    if (is_lease) back.chunks[back.count++] = static_cast<std::uint64_t>(chunks[i].id);
  }
  d.leased -= leased;
  if (back.count != 0) tell(back);
  if (outside == 0) return;
  (void)charge(d, protocol::ChargeKind::local_chunk, -static_cast<std::int64_t>(outside));
  d.outside -= outside;
}

Result<void> ChunkSourceOfProcess::charge(Device& device, protocol::ChargeKind kind, std::int64_t bytes) {
  if (!known_to_daemon(device)) return {};
  auto request = protocol::make<protocol::Charge>(0);
  request.device = device.daemon_index;
  request.kind = kind;
  request.bytes = bytes;
  auto reply = connection_.call<protocol::ChargeReply>(request);
  if (!reply) note_loss();
  if (!reply || reply->header.status != Status::over_limit) return {};  // without a daemon nobody keeps the account
  return failure(ErrorCode::over_limit, "limit of the policy");
}

Result<void> ChunkSourceOfProcess::account(int device, protocol::ChargeKind kind, std::int64_t bytes) {
  MutexLock lock(daemon_mutex_);
  reach_daemon();
  Device& d = devices_[device];
  if (auto allowed = charge(d, kind, bytes); !allowed) return allowed;
  d.outside += static_cast<std::uint64_t>(bytes);
  return {};
}

bool ChunkSourceOfProcess::enter_native(int device, Bytes size) {
  Device& d = devices_[device];
  if (within_bound(d, size, reach(device).known ? d.environment_limit : load(d.limit))) {
    if (account(device, protocol::ChargeKind::local_chunk, static_cast<std::int64_t>(size.value))) return true;
    subtract(d.held, size.value);
  }
  tell_of_limit(device, size);
  return false;
}

void ChunkSourceOfProcess::note_native(int device, Bytes size) {
  add(devices_[device].held, size.value);
  (void)account(device, protocol::ChargeKind::native, static_cast<std::int64_t>(size.value));
}

void ChunkSourceOfProcess::leave_native(int device, Bytes size) {
  subtract(devices_[device].held, size.value);
  (void)account(device, protocol::ChargeKind::native, -static_cast<std::int64_t>(size.value));
}

void ChunkSourceOfProcess::memory_info(int device, Bytes reusable, Bytes& device_free, Bytes& device_total) {
  Device& d = devices_[device];
  std::uint64_t free = device_free.value;
  protocol::MemoryInfoReply info;
  if (ask_daemon(device, info)) free = info.free_bytes;
  const std::uint64_t limit_now = load(d.limit);
  const std::uint64_t held = load(d.held);
  free = smaller(free, limit_now > held ? limit_now - held : 0);
  device_total = {smaller(device_total.value, limit_now)};
  device_free = {smaller(free + reusable.value, device_total.value)};
}

void ChunkSourceOfProcess::goodbye() {
  // Counted before a chunk is asked for: a thread that is just growing its heap is seen here.
  for (const Device& device : devices_)
    if (load(device.held) != 0) return;
  MutexLock lock(daemon_mutex_);
  left_ = true;
  connection_.post_last(protocol::make<protocol::Goodbye>(0));
}

SourceCounters ChunkSourceOfProcess::counters() const {
  return {load(counters_.granted), load(counters_.recycled), load(counters_.created), load(counters_.returned)};
}

}  // namespace vramd::shim
