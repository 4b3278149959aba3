// What the hook has seen and done. Counters only grow; relaxed, since nothing is ordered by them. Any thread.
#pragma once

#include "shim/hook/entries.hpp"
#include "shim/hook/vramd_hook.h"

namespace vramd::shim::hook {

// In the order of vramd_hook_counts.
enum class Counter : std::uint32_t { lookups, lookup_replacements, queries, query_replacements, queries_of_unknown_abi };

void count(Counter counter);
void count_handed_out(Entry entry);

vramd_hook_counts read_counts();
std::uint64_t times_handed_out(Entry entry);

}  // namespace vramd::shim::hook
