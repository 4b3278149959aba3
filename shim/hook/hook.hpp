// What the rest of the shim uses of the hook. A wrapper (shim/calls) is entered only where vramd may act.
//
// - real<Entry::cuMemFree_v2>()(address): the driver's function, typed.
// - real_entry("cuMemFree_v2"): the same by name, nullptr if missing; for load_driver().
// - OwnCall: around every driver call; what the driver does inside it is not hooked.
// - mark_process(): after a successful cuInit; children forked from then on are inert.
// - disabled(), in_forked_child(): the doors ask before a wrapper is entered; threads of our own ask again.
#pragma once

#include "shim/hook/driver_library.hpp"
#include "shim/hook/entries.hpp"
#include "shim/hook/process.hpp"
