// What the tracer remembers. Fixed tables, no allocation, no lock.
#pragma once

#include "shim/hook/entries.hpp"

namespace vramd::trace {

// Takes a place in the order of calls; finish() tells the driver's answer.
std::uint64_t begin(shim::hook::Entry entry);
void finish(std::uint64_t place, CUresult result);

void note_query(const char* name, int version, cuuint64_t flags, CUresult result);

}  // namespace vramd::trace
