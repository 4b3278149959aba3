// The door in front of every wrapper: what the program's pointer to a hooked function leads to.
#pragma once

#include "shim/hook/entries.hpp"

namespace vramd::shim::hook {

// The gate of a hooked entry: runs the wrapper, or the driver's function where vramd must not act
// (passes_through()). nullptr for all others.
void* gate_of(Entry entry);

inline bool is_hooked(Entry entry) { return gate_of(entry) != nullptr; }

// What a program gets for a hooked entry: our exported function where there is one, so that a pointer from
// dlsym, from cuGetProcAddress and from linking is the same (others compare and patch them); else the gate.
void* handed_out(Entry entry);

}  // namespace vramd::shim::hook
