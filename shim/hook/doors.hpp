// The door in front of every wrapper: what the program's pointer to a hooked function leads to.
#pragma once

#include "shim/hook/entries.hpp"

namespace vramd::shim::hook {

// The door of a hooked entry: lets submissions pass the gate, runs the wrapper, or the driver's function where vramd must not
// act (passes_through()). nullptr for all others.
void* door_of(Entry entry);

inline bool is_hooked(Entry entry) { return door_of(entry) != nullptr; }

// What a program gets for a hooked entry: our exported function where there is one, so that a pointer from
// dlsym, from cuGetProcAddress and from linking is the same (others compare and patch them); else the door.
void* handed_out(Entry entry);

}  // namespace vramd::shim::hook
