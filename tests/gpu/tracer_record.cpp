#include "tests/gpu/tracer_record.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "shim/hook/abis.hpp"
#include "tests/gpu/vramd_trace.h"

namespace vramd::trace {
namespace {

using shim::hook::Entry;
using shim::hook::index_of;
using shim::hook::kEntryCount;

constexpr std::uint64_t kCalls = 1 << 14;  // a power of two; between two takes far fewer are made
constexpr std::uint64_t kQueries = 2048;
constexpr std::int32_t kRunning = -1;

struct Call {
  std::atomic<Entry> entry;
  std::atomic<std::int32_t> result;
  std::atomic<long> thread;
};

constinit Call g_calls[kCalls];
constinit std::atomic<std::uint64_t> g_begun{0};
constinit std::uint64_t g_taken = 0;  // of the thread that takes

constinit vramd_trace_query g_queries[kQueries];
constinit std::atomic<std::uint64_t> g_asked{0};
// Number of the first question that was answered with this entry, plus one.
constinit std::atomic<std::uint32_t> g_first_question[kEntryCount];

long this_thread() { return syscall(SYS_gettid); }

}  // namespace

std::uint64_t begin(Entry entry) {
  const std::uint64_t place = g_begun.fetch_add(1);
  Call& call = g_calls[place % kCalls];
  call.entry = entry;
  call.result = kRunning;
  call.thread = this_thread();
  return place;
}

void finish(std::uint64_t place, CUresult result) { g_calls[place % kCalls].result = static_cast<std::int32_t>(result); }

void note_query(const char* name, int version, cuuint64_t flags, CUresult result) {
  const std::uint64_t number = g_asked.fetch_add(1);
  if (number >= kQueries || name == nullptr) return;
  vramd_trace_query& query = g_queries[number];
  std::strncpy(query.name, name, sizeof(query.name) - 1);
  query.version = version;
  query.flags = static_cast<std::uint32_t>(flags);
  query.result = static_cast<std::int32_t>(result);
  if (result != CUDA_SUCCESS) return;
  if (const auto entry = shim::hook::select_abi(name, version, flags)) {
    std::uint32_t none = 0;
    g_first_question[index_of(*entry)].compare_exchange_strong(none, static_cast<std::uint32_t>(number) + 1);
  }
}

}  // namespace vramd::trace

using namespace vramd::trace;

extern "C" {

std::uint64_t vramd_trace_take(vramd_trace_call* calls, std::uint64_t room) {
  const std::uint64_t end = g_begun.load();
  const std::uint64_t count = end - g_taken;
  const long taker = this_thread();
  for (std::uint64_t i = 0; i < count && i < room && i < kCalls; ++i) {
    const Call& call = g_calls[(g_taken + i) % kCalls];
    const Entry entry = call.entry;
    const char* exported = vramd::shim::hook::name_of(entry);
    calls[i] = {exported, exported, -1, 0, call.result, call.thread == taker};
    if (const std::uint32_t question = g_first_question[index_of(entry)]; question != 0) {
      const vramd_trace_query& query = g_queries[question - 1];
      calls[i].asked = query.name;
      calls[i].version = query.version;
      calls[i].flags = query.flags;
    }
  }
  g_taken = end;
  return count;
}

std::uint64_t vramd_trace_queries(vramd_trace_query* queries, std::uint64_t room) {
  const std::uint64_t count = g_asked.load();
  for (std::uint64_t i = 0; i < count && i < room && i < kQueries; ++i) queries[i] = g_queries[i];
  return count;
}

}  // extern "C"
