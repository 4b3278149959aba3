#include "shim/client/chunk_source.hpp"

#include <string.h>
#include <unistd.h>

#include <utility>

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
  if (device_count > kMaxDevices) device_count = kMaxDevices;
  auto hello = protocol::make<protocol::Hello>(0);
  hello.mode = settings_.mode;
  hello.priority = settings_.priority;
  hello.limit_bytes = settings_.limit_percent > 0 ? 0 : settings_.limit.value;
  memcpy(hello.job, settings_.job, sizeof hello.job);
  hello.job[sizeof hello.job - 1] = '\0';
  (void)driver_.driver_get_version(&hello.driver_version);
  hello.device_count = static_cast<std::uint32_t>(device_count);
  for (int i = 0; i < device_count; ++i) {
    CUuuid uuid{};
    (void)driver_.device_get_uuid(&uuid, i);
    memcpy(hello.devices[i].bytes, uuid.bytes, sizeof uuid.bytes);
    std::size_t total = 0;
    (void)driver_.device_total_mem(&total, i);
    devices_[i].total = total;
    const Bytes wish = settings_.limit_of({total});
    if (wish > Bytes{0}) devices_[i].limit = devices_[i].environment_limit = wish.value;
  }

  auto reply = connection_.open(settings_.socket, hello);
  const Status status = reply ? reply->header.status : Status::ok;
  if (reply && (status == Status::ok || status == Status::too_many)) {
    for (int i = 0; i < device_count; ++i) {
      if (reply->devices[i].index == UINT32_MAX) continue;
      devices_[i].limit = smaller(devices_[i].environment_limit, reply->limit_bytes[i]);
    }
  }
  if (!reply || status != Status::ok) {
    Mode mode = settings_.mode == Mode::unset ? Mode::pool : settings_.mode;
    if (status == Status::too_many) mode = reply->mode;
    log(LogLevel::info, "mode %s, source local: %s (%s)", name_of(mode), reply ? reason(status) : reason(reply.error()),
        settings_.socket);
    return mode;
  }
  for (int i = 0; i < device_count; ++i) {
    Device& device = devices_[i];
    device.daemon_index = reply->devices[i].index;
    if (device.daemon_index == UINT32_MAX) {
      log(LogLevel::info, "device %d: source local, the daemon does not know this device", i);
      continue;
    }
    device.source = reply->devices[i].source == protocol::Source::daemon ? protocol::Source::daemon : protocol::Source::local;
    log(LogLevel::info, "device %d: source %s", i, name_of(reply->devices[i].source));
  }
  log(LogLevel::info, "mode %s, session %llu at %s", name_of(reply->mode), static_cast<unsigned long long>(reply->session),
      settings_.socket);
  return reply->mode;
}

bool ChunkSourceOfProcess::ask_daemon(int device, protocol::MemoryInfoReply& info) {
  if (!known_to_daemon(device)) return false;
  Device& d = devices_[device];
  auto request = protocol::make<protocol::MemoryInfo>(0);
  request.device = d.daemon_index;
  auto reply = connection_.call<protocol::MemoryInfoReply>(request);
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
  (void)charge(device, protocol::ChargeKind::question, static_cast<std::int64_t>(size.value));
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
  // The daemon checks its own limit, which may have changed; here only the environment's wish counts while it is there.
  if (!within_bound(d, size, from_daemon(device) ? d.environment_limit : load(d.limit))) {
    tell_of_limit(device, size);
    return failure(ErrorCode::over_limit, "limit of the session");
  }
  auto chunk = from_daemon(device) ? acquire_from_daemon(device, size) : acquire_local(device, size);
  if (!chunk && chunk.error().code == ErrorCode::disconnected) {
    log(LogLevel::warn, "the daemon is gone; this process goes on with memory of its own (source local)");
    chunk = acquire_local(device, size);
  }
  if (chunk) return chunk;
  if (chunk.error().code == ErrorCode::over_limit) tell_of_limit(device, size);
  subtract(d.held, size.value);
  return chunk;
}

Bytes ChunkSourceOfProcess::available(int device) {
  protocol::MemoryInfoReply info;
  if (ask_daemon(device, info)) return {info.free_bytes};
  std::size_t free = 0, total = 0;
  return {driver_.mem_get_info(&free, &total) == CUDA_SUCCESS ? free : 0};
}

Result<Chunk> ChunkSourceOfProcess::acquire_from_daemon(int device, Bytes size) {
  auto request = protocol::make<protocol::Grant>(0);
  request.device = devices_[device].daemon_index;
  request.bytes = size.value;
  int fd = -1;
  auto reply = connection_.call<protocol::GrantReply>(request, &fd);
  if (!reply) return failure(ErrorCode::disconnected, reply.error().what);  // whatever it was, the connection is over
  switch (reply->header.status) {
    case Status::ok: break;
    case Status::out_of_memory: return failure(ErrorCode::out_of_memory, "the daemon's pool");
    case Status::over_limit: return failure(ErrorCode::over_limit, "limit of the policy");
    default: return failure(ErrorCode::protocol, "grant refused", static_cast<int>(reply->header.status));
  }
  Chunk chunk;
  chunk.id = ChunkId{reply->chunk};
  chunk.size = {reply->bytes};
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
    auto back = protocol::make<protocol::GiveBack>(0);
    back.count = 1;
    back.chunks[0] = reply->chunk;
    connection_.post(back);
    return imported ? failure(ErrorCode::protocol, "grant of another size") : tl::unexpected(imported.error());
  }
  auto received = protocol::make<protocol::Acknowledge>(0);
  received.chunk = reply->chunk;
  connection_.post(received);
  add(counters_.granted, 1);
  if ((reply->flags & protocol::kGrantFresh) == 0) add(counters_.recycled, 1);
  return chunk;
}

Result<Chunk> ChunkSourceOfProcess::acquire_local(int device, Bytes size) {
  if (auto allowed = charge(device, protocol::ChargeKind::local_chunk, static_cast<std::int64_t>(size.value)); !allowed)
    return tl::unexpected(allowed.error());
  Chunk chunk;
  chunk.size = size;
  const CUmemAllocationProp properties = local_properties(device);
  if (auto created = check(driver_.mem_create(&chunk.handle, size.value, &properties, 0), "cuMemCreate"); !created) {
    (void)charge(device, protocol::ChargeKind::local_chunk, -static_cast<std::int64_t>(size.value));
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
    if (chunk.id == ChunkId{}) {
      (void)charge(device, protocol::ChargeKind::local_chunk, -static_cast<std::int64_t>(chunk.size.value));
    } else {
      released[waiting++] = chunk;
      if (waiting == protocol::kMaxChunksPerMessage) give_back_to_daemon(released, std::exchange(waiting, 0));
    }
    subtract(devices_[device].held, chunk.size.value);
  }
  if (waiting != 0) give_back_to_daemon(released, waiting);
}

void ChunkSourceOfProcess::give_back_to_daemon(const Chunk* chunks, std::size_t count) {
  auto back = protocol::make<protocol::GiveBack>(0);
  back.count = static_cast<std::uint32_t>(count);
  for (std::size_t i = 0; i < count; ++i) back.chunks[i] = static_cast<std::uint64_t>(chunks[i].id);
  connection_.post(back);
}

Result<void> ChunkSourceOfProcess::charge(int device, protocol::ChargeKind kind, std::int64_t bytes) {
  if (!known_to_daemon(device)) return {};
  auto request = protocol::make<protocol::Charge>(0);
  request.device = devices_[device].daemon_index;
  request.kind = kind;
  request.bytes = bytes;
  auto reply = connection_.call<protocol::ChargeReply>(request);
  if (!reply || reply->header.status == Status::ok) return {};  // without a daemon nobody keeps the account
  return failure(ErrorCode::over_limit, "limit of the policy");
}

bool ChunkSourceOfProcess::enter_native(int device, Bytes size) {
  Device& d = devices_[device];
  if (within_bound(d, size, known_to_daemon(device) ? d.environment_limit : load(d.limit))) {
    if (charge(device, protocol::ChargeKind::local_chunk, static_cast<std::int64_t>(size.value))) return true;
    subtract(d.held, size.value);
  }
  tell_of_limit(device, size);
  return false;
}

void ChunkSourceOfProcess::note_native(int device, Bytes size) {
  add(devices_[device].held, size.value);
  (void)charge(device, protocol::ChargeKind::native, static_cast<std::int64_t>(size.value));
}

void ChunkSourceOfProcess::leave_native(int device, Bytes size) {
  subtract(devices_[device].held, size.value);
  (void)charge(device, protocol::ChargeKind::native, -static_cast<std::int64_t>(size.value));
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
  connection_.post_last(protocol::make<protocol::Goodbye>(0));
}

SourceCounters ChunkSourceOfProcess::counters() const {
  return {load(counters_.granted), load(counters_.recycled), load(counters_.created), load(counters_.returned)};
}

}  // namespace vramd::shim
