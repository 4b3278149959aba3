// The exported driver names of libvramd.so, one small function each (trampolines_x86_64.S). Programs that
// link this code together with a driver leave trampolines and preload.cpp out; then no entry has an export.
#pragma once

#include "shim/hook/entries.hpp"

namespace vramd::shim::hook {

// nullptr where the trampolines are not linked in.
void* export_of(Entry entry);

}  // namespace vramd::shim::hook
