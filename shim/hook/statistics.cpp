#include "shim/hook/statistics.hpp"

#include <atomic>

namespace vramd::shim::hook {
namespace {

constexpr std::size_t kCounterCount = sizeof(vramd_hook_counts) / sizeof(std::uint64_t);

constinit std::atomic<std::uint64_t> g_counts[kCounterCount];
constinit std::atomic<std::uint32_t> g_handed_out[kEntryCount];

std::uint64_t read(Counter counter) { return g_counts[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed); }

}  // namespace

void count(Counter counter) { g_counts[static_cast<std::size_t>(counter)].fetch_add(1, std::memory_order_relaxed); }

void count_handed_out(Entry entry) { g_handed_out[index_of(entry)].fetch_add(1, std::memory_order_relaxed); }

vramd_hook_counts read_counts() {
  return {.lookups = read(Counter::lookups),
          .lookup_replacements = read(Counter::lookup_replacements),
          .queries = read(Counter::queries),
          .query_replacements = read(Counter::query_replacements),
          .queries_of_unknown_abi = read(Counter::queries_of_unknown_abi)};
}

std::uint64_t times_handed_out(Entry entry) { return g_handed_out[index_of(entry)].load(std::memory_order_relaxed); }

}  // namespace vramd::shim::hook
