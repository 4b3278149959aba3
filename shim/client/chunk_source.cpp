#include "shim/client/chunk_source.hpp"

#include <string.h>
#include <unistd.h>

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

const char* reason(const Error& error) {
  switch (error.code) {
    case ErrorCode::disconnected: return "no daemon listens there";
    case ErrorCode::timeout: return "the daemon does not answer";
    case ErrorCode::unsupported:
      switch (static_cast<Status>(error.detail)) {
        case Status::version_mismatch: return "the daemon speaks another protocol version; install the same release of both";
        case Status::too_many: return "the daemon has as many sessions as it takes";
        default: return "the daemon refused this session";
      }
    case ErrorCode::invalid_argument: return "the socket path is too long";
    default: return error.what;
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
  if (!reply) {
    const Mode mode = settings_.mode == Mode::unset ? Mode::pool : settings_.mode;
    log(LogLevel::info, "mode %s, source local: %s (%s)", name_of(mode), reason(reply.error()), settings_.socket);
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
    log(LogLevel::info, "device %d: source %s", i,
        device.source == protocol::Source::daemon ? "daemon" : "local, as the daemon decided");
    // The limit is asked for here so that it holds even if the daemon goes away.
    protocol::MemoryInfoReply info;
    (void)ask_daemon(i, info);
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
  return size.value > load(d.limit);
}

Result<Chunk> ChunkSourceOfProcess::acquire(int device, Bytes size) {
  Device& d = devices_[device];
  // Taken before the chunk exists, so that threads at once cannot pass the limit together. The daemon checks its own
  // limit, which may have changed; here only the environment's wish counts while it is there.
  add(d.held, size.value);
  const std::uint64_t bound = from_daemon(device) ? d.environment_limit : load(d.limit);
  if (load(d.held) > bound) {
    subtract(d.held, size.value);
    return failure(ErrorCode::over_limit, "limit of the session");
  }
  auto chunk = from_daemon(device) ? acquire_from_daemon(device, size) : acquire_local(device, size);
  if (!chunk && chunk.error().code == ErrorCode::disconnected) {
    log(LogLevel::warn, "the daemon is gone; this process goes on with memory of its own (source local)");
    chunk = acquire_local(device, size);
  }
  if (!chunk) subtract(d.held, size.value);
  return chunk;
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
    ::close(fd);
  }
  if (!imported || chunk.size != size) {
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

void ChunkSourceOfProcess::give_back(int device, const Chunk& chunk) {
  if (auto released = check(driver_.mem_release(chunk.handle), "cuMemRelease"); !released) {
    // The bytes stay ours and stay counted: nobody else may be told that they are free.
    log(LogLevel::warn, "cuMemRelease failed with CUresult %d; %llu bytes stay with this process", released.error().detail,
        static_cast<unsigned long long>(chunk.size.value));
    return;
  }
  subtract(devices_[device].held, chunk.size.value);
  add(counters_.returned, 1);
  if (chunk.id == ChunkId{}) {
    (void)charge(device, protocol::ChargeKind::local_chunk, -static_cast<std::int64_t>(chunk.size.value));
    return;
  }
  auto back = protocol::make<protocol::GiveBack>(0);
  back.count = 1;
  back.chunks[0] = static_cast<std::uint64_t>(chunk.id);
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

void ChunkSourceOfProcess::charge_native(int device, std::int64_t bytes) {
  (void)charge(device, protocol::ChargeKind::native, bytes);
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

void ChunkSourceOfProcess::goodbye() { connection_.post(protocol::make<protocol::Goodbye>(0)); }

SourceCounters ChunkSourceOfProcess::counters() const {
  return {load(counters_.granted), load(counters_.recycled), load(counters_.created), load(counters_.returned)};
}

}  // namespace vramd::shim
