// Every byte that crosses between a session (or an admin tool) and the daemon.
//
// Transport: AF_UNIX SEQPACKET, one message a packet, host byte order (both ends are on one machine).
// Layout: fixed structs, append-only. A receiver accepts any `struct_size` from the size of version 1.0 up, uses what
// it knows and reads what the sender did not send as zero. Nobody trusts the peer: decode() copies once, then validates.
// Every request carries a `request` number which its reply repeats. Requests without a reply say so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace vramd::protocol {

inline constexpr std::uint32_t kMagic = 0x444d5256;  // the bytes "VRMD"
inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::uint32_t kMaxDevices = 16;
inline constexpr std::uint32_t kMaxChunksPerMessage = 64;
inline constexpr std::uint32_t kMaxUnacknowledged = 64;  // grants of one session that it has not acknowledged
inline constexpr std::size_t kMaxMessage = 1024;

enum class Type : std::uint16_t {
  hello = 1,
  hello_reply = 2,
  grant = 3,
  grant_reply = 4,  // carries one fd when status is ok
  acknowledge = 5,  // no reply
  give_back = 6,    // no reply
  charge = 7,
  charge_reply = 8,
  memory_info = 9,
  memory_info_reply = 10,
  goodbye = 11,  // no reply
  status = 12,
  status_reply = 13,  // carries one fd: a sealed memfd with JSON text
  error_reply = 14,   // to what the receiver does not understand
  recall = 15,        // daemon to session, on the line; no reply
  recalled = 16,      // no reply
  order = 17,         // of admins
  order_reply = 18,
};

// In `Header::status` of replies; 0 in requests.
enum class Status : std::uint32_t {
  ok = 0,
  unsupported = 1,       // unknown message type or feature
  malformed = 2,         // sizes or values that cannot be
  version_mismatch = 3,  // the version ranges do not meet
  out_of_memory = 4,     // the device cannot back it, after all that the daemon may take back
  over_limit = 5,        // a limit of the policy forbids it
  no_device = 6,         // no such device here
  refused = 7,           // not in this state or not by this user
  too_many = 8,          // sessions, or unacknowledged grants
  internal = 9,          // the daemon's own trouble; its log says which
};

enum class Role : std::uint32_t { session = 1, admin = 2 };
enum class Mode : std::uint32_t { unset = 0, off = 1, observe = 2, pool = 3, full = 4 };
enum class Priority : std::uint32_t { unset = 0, batch = 1, normal = 2, interactive = 3 };
enum class Source : std::uint32_t { none = 0, daemon = 1, local = 2, native = 3 };
// What an admin orders. Root and the daemon's own user may order anything; others only what concerns a session of their own,
// and a limit only to lower it.
enum class Verb : std::uint32_t {
  trim = 1,    // give to the driver what the pool and the sessions hold idle
  limit = 2,   // a limit for one session, instead of the policy's; UINT64_MAX = the policy's again
  reload = 3,  // read the policy file again
};
// What a charge is for: memory that a session holds without a lease.
enum class ChargeKind : std::uint32_t {
  local_chunk = 1,  // a chunk that it is about to create: refused above the limit
  native = 2,       // what the driver has given it already: entered whatever the limit says
  question = 3,     // nothing yet: whether the limit allows a request of this size. Refusals are counted and logged
  kept = 4,         // chunks of an earlier connection, of this daemon or of one before it, and what else it held then: entered
                    // whatever the limit says
};

// Features: offered in Hello, agreed on in HelloReply.
// The line: the reply brings two descriptors, first the session's end of a SEQPACKET socket on which the daemon speaks first
// (it never reads there), then a memfd of sizeof(SessionPage) that the session writes and the daemon reads.
inline constexpr std::uint64_t kFeatureLine = 1;

// Set in GrantReply::flags when the chunk was never leased before: its bytes are the driver's, not another session's.
inline constexpr std::uint32_t kGrantFresh = 1;

struct Header {
  std::uint32_t magic = kMagic;
  Type type{};
  std::uint16_t struct_size = 0;
  std::uint32_t request = 0;
  Status status = Status::ok;
};
static_assert(sizeof(Header) == 16);

struct Uuid {
  std::uint8_t bytes[16] = {};
};

// First message of a connection.
struct Hello {
  static constexpr Type kType = Type::hello;
  Header header;
  std::uint16_t version_min = kVersion;
  std::uint16_t version_max = kVersion;
  Role role = Role::session;
  std::uint64_t features = 0;
  std::uint64_t limit_bytes = 0;  // wish of the session's environment, per device; 0 = none. Only ever lowers the limit
  Mode mode = Mode::unset;        // wish of the session's environment
  Priority priority = Priority::unset;
  std::int32_t driver_version = 0;  // cuDriverGetVersion
  std::uint32_t device_count = 0;   // devices that the session sees, in its order
  Uuid devices[kMaxDevices];
  char job[64] = {};  // free text for people, ends with 0
};
static_assert(sizeof(Hello) == 16 + 40 + 256 + 64);

struct DeviceEntry {
  std::uint32_t index = 0;  // the daemon's index, to be named in requests; UINT32_MAX = the daemon does not know it
  Source source = Source::none;
  std::uint64_t total_bytes = 0;
};

struct HelloReply {
  static constexpr Type kType = Type::hello_reply;
  Header header;
  std::uint16_t version = kVersion;
  std::uint16_t reserved = 0;
  Mode mode = Mode::unset;  // the session's mode, decided
  std::uint64_t features = 0;
  std::uint64_t session = 0;
  std::uint64_t daemon_epoch = 0;  // differs between two lives of the daemon
  std::uint32_t device_count = 0;
  std::uint32_t reserved2 = 0;
  DeviceEntry devices[kMaxDevices];  // in the session's order
  // In the same order: the limit of the policy and of the environment's wish, UINT64_MAX = none. Valid in a refusal with
  // `too_many` as well.
  std::uint64_t limit_bytes[kMaxDevices] = {};
};
static_assert(sizeof(HelloReply) == 16 + 40 + 256 + 128);

struct Grant {
  static constexpr Type kType = Type::grant;
  Header header;
  std::uint32_t device = 0;
  std::uint32_t flags = 0;
  std::uint64_t bytes = 0;  // a chunk class
};
static_assert(sizeof(Grant) == 32);

struct GrantReply {
  static constexpr Type kType = Type::grant_reply;
  Header header;
  std::uint64_t chunk = 0;
  std::uint64_t bytes = 0;
  std::uint32_t flags = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(GrantReply) == 40);

// "I have imported this chunk." One that is given back without it is not lent again.
struct Acknowledge {
  static constexpr Type kType = Type::acknowledge;
  Header header;
  std::uint64_t chunk = 0;
};
static_assert(sizeof(Acknowledge) == 24);

// "Unmapped, handle released, no work of mine can reach them." Chunks come back clean.
struct GiveBack {
  static constexpr Type kType = Type::give_back;
  Header header;
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
  std::uint64_t chunks[kMaxChunksPerMessage] = {};
};
static_assert(sizeof(GiveBack) == 24 + 512);

// Memory outside the pool enters (bytes > 0) or leaves (bytes < 0) the session's account. A refusal changes nothing.
struct Charge {
  static constexpr Type kType = Type::charge;
  Header header;
  std::uint32_t device = 0;
  ChargeKind kind = ChargeKind::native;
  std::int64_t bytes = 0;
};
static_assert(sizeof(Charge) == 32);

struct ChargeReply {
  static constexpr Type kType = Type::charge_reply;
  Header header;
};
static_assert(sizeof(ChargeReply) == 16);

struct MemoryInfo {
  static constexpr Type kType = Type::memory_info;
  Header header;
  std::uint32_t device = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(MemoryInfo) == 24);

// What this session may think of the device: total = min(limit, device), free = what it could still be granted.
// `used_bytes` is leases plus charges of the session; the session adds what it caches itself to `free_bytes`.
struct MemoryInfoReply {
  static constexpr Type kType = Type::memory_info_reply;
  Header header;
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t limit_bytes = 0;  // UINT64_MAX = no limit
  std::uint64_t used_bytes = 0;
};
static_assert(sizeof(MemoryInfoReply) == 48);

// "I want nothing more." What is still leased is treated as at any other end.
struct Goodbye {
  static constexpr Type kType = Type::goodbye;
  Header header;
};
static_assert(sizeof(Goodbye) == 16);

struct StatusRequest {
  static constexpr Type kType = Type::status;
  Header header;
};
static_assert(sizeof(StatusRequest) == 16);

struct StatusReply {
  static constexpr Type kType = Type::status_reply;
  Header header;
  std::uint64_t bytes = 0;  // length of the JSON text in the fd
};
static_assert(sizeof(StatusReply) == 24);

// "Give back what you hold and don't use", up to so many bytes or a little more. On the line.
struct Recall {
  static constexpr Type kType = Type::recall;
  Header header;
  std::uint32_t device = 0;  // the daemon's index
  std::uint32_t reserved = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(Recall) == 32);

// "I have given back all that I could for the recall of this number", in the header's `request`; after the give_backs.
struct Recalled {
  static constexpr Type kType = Type::recalled;
  Header header;
  std::uint32_t device = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Recalled) == 24);

// What a session shows of itself all the time. Each field is written by one thread at a time, whole, at any moment; the daemon
// copies and believes nothing: it is advice.
struct SessionPage {
  std::uint64_t idle_bytes[kMaxDevices] = {};  // by the daemon's index: held, used by nothing, and to be had by a recall
};
static_assert(sizeof(SessionPage) == 128);

struct Order {
  static constexpr Type kType = Type::order;
  Header header;
  Verb verb{};
  std::uint32_t device = UINT32_MAX;  // the daemon's index; UINT32_MAX = all
  std::uint64_t session = 0;          // 0 = all
  std::uint64_t bytes = 0;            // of a limit, per device
};
static_assert(sizeof(Order) == 40);

// Status: refused when it is not for this user to order, no_device when there is no such session or device, malformed when the
// policy file has errors (its log and `vramctl policy check` say which).
struct OrderReply {
  static constexpr Type kType = Type::order_reply;
  Header header;
  // Of a trim: what the driver has got back; UINT64_MAX when it stays in the pool, which is not for this user to trim.
  std::uint64_t bytes = 0;
};
static_assert(sizeof(OrderReply) == 24);

struct ErrorReply {
  static constexpr Type kType = Type::error_reply;
  Header header;
};
static_assert(sizeof(ErrorReply) == 16);

// A message with its header filled in.
template <class M>
M make(std::uint32_t request, Status status = Status::ok) {
  static_assert(std::is_trivially_copyable_v<M> && sizeof(M) <= kMaxMessage);
  M message{};
  message.header.type = M::kType;
  message.header.struct_size = sizeof(M);
  message.header.request = request;
  message.header.status = status;
  return message;
}

// Reads the header of a received packet. False when it is no message of ours: drop the connection.
inline bool decode_header(const void* packet, std::size_t size, Header& out) {
  if (size < sizeof(Header) || size > kMaxMessage) return false;
  std::memcpy(&out, packet, sizeof(Header));
  return out.magic == kMagic && out.struct_size == size;
}

// Copies a packet into `out`. Version 1.0 knows one size of each message, so a shorter packet is malformed and a longer
// one comes from a newer peer. (When a struct grows, its 1.0 size becomes the lower bound here.)
template <class M>
bool decode(const void* packet, std::size_t size, M& out) {
  static_assert(std::is_trivially_copyable_v<M>);
  Header header;
  if (!decode_header(packet, size, header) || header.type != M::kType || size < sizeof(M)) return false;
  std::memcpy(&out, packet, sizeof(M));
  return true;
}

}  // namespace vramd::protocol
