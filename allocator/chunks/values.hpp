// What goes into the pool and what comes out of it. Values only.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "allocator/base/units.hpp"

namespace vramd::chunks {

// Sessions that may be handed each other's used chunks. 0 is "none": the domain of chunks that nobody has
// used yet.
enum class DomainId : std::uint32_t {};
// Sessions that share one limit. 0 is "none".
enum class GroupId : std::uint32_t {};

inline constexpr Bytes kUnlimited{UINT64_MAX};

struct Limits {
  Bytes session = kUnlimited;  // what this session may hold, leases and charges together
  GroupId group{};
  Bytes group_limit = kUnlimited;  // what all sessions of the group may hold together
};

// Command: release the driver handle of a chunk and report it with Pool::released().
struct Release {
  ChunkId chunk;
  Bytes bytes;
  bool dirty;  // its session died: the driver may return the bytes later than our release
};
using Releases = std::vector<Release>;

// Answers to a request. The commands in NeedConvert are to be executed in order: releases first.
struct Granted {
  SessionId session;
  ChunkId chunk;
  Bytes bytes;
  bool fresh;  // never leased before: its bytes are the driver's, not another session's
};
struct NeedCreate {
  ChunkId chunk;  // to be named in created() or create_failed()
  Bytes bytes;
  bool foreign;  // the driver may take memory for it that another domain has used: to be cleared before anybody sees it
};
struct NeedConvert {
  Releases releases;
  ChunkId chunk;
  Bytes bytes;
  bool foreign;
};
// A chunk was created for a session that is gone: it stays in the pool. `releases` is what is above `retain`
// now.
struct Kept {
  Releases releases;
};
enum class Refusal : std::uint8_t {
  not_a_class,
  over_limit,
  too_many_unacknowledged,
  out_of_memory,
  driver_failed,
};
struct Refused {
  Refusal reason;
};
using Decision = std::variant<Granted, NeedCreate, NeedConvert, Kept, Refused>;

enum class CreateFailure : std::uint8_t { out_of_memory, other };

struct Charged {
  bool accepted;
  Releases releases;  // idle chunks that have to go so that the driver can serve the charged bytes
};

struct Totals {
  Bytes leased;
  Bytes cached;     // idle, held warm
  Bytes creating;   // asked of the driver
  Bytes releasing;  // clean chunks on their way out
  Bytes dying;      // chunks of dead sessions on their way out
  Bytes charged;    // memory outside the pool in the sessions' accounts

  Bytes reserved() const { return leased + cached; }
};

// Counted since the pool was made.
struct Counts {
  std::uint64_t hit = 0;         // granted from an idle list
  std::uint64_t miss = 0;        // granted after a create
  std::uint64_t oom = 0;         // refused: the device could not back it
  std::uint64_t over_limit = 0;  // refused: a limit forbids it
  std::uint64_t recycled = 0;    // hits by a chunk that somebody had used before
  std::uint64_t converted = 0;   // idle chunks released to make room for another size, domain or charge
  std::uint64_t trimmed = 0;     // idle chunks released because they were above `retain`
};

}  // namespace vramd::chunks
