// The command line of replay, and the trace that it names.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tests/programs/flags.hpp"
#include "tools/traces/reader.hpp"

struct ReplayOptions {
  std::string file, api = "malloc", touch = "none", verify = "now", oom = "stop";
  std::uint64_t repeat = 1, limit_events = 0, plant_corruption = 0;
  double scale = 1;
  bool keep = false, hold = false;
};

inline ReplayOptions parse_replay_options(int argc, char** argv) {
  ReplayOptions options;
  Flags flags("replay");
  flags.file("TRACE", options.file);
  flags.choice("api", options.api, {"malloc", "async", "driver", "vmm"},
               "cudaMalloc, cudaMallocAsync, cuMemAlloc, or cuMemCreate and cuMemMap");
  flags.choice("touch", options.touch, {"none", "edges", "full"},
               "write a pattern at allocation, verify it before the free; edges: 64 bytes at start, end, every 2 MiB");
  flags.choice("verify", options.verify, {"now", "late"},
               "now: wait for the answer before each free; late: free while the check is under way, ask at the end");
  flags.number("repeat", options.repeat, 1, 1 << 20, "passes over the trace; what it leaves live is freed after each");
  flags.number("limit-events", options.limit_events, 0, UINT64_MAX, "stop each pass after so many events; 0 = none");
  flags.real("scale", options.scale, "multiply sizes by this factor; at least 1 byte remains");
  flags.choice("oom", options.oom, {"stop", "continue"}, "out of memory: exit 3, or count it and skip the block");
  flags.flag("keep", options.keep, "do not free what the trace leaves live at the end of the last pass");
  flags.flag("hold", options.hold,
             "at the end of the last pass print 'holding'; wait for the end of stdin or SIGTERM, then free "
             "the rest");
  flags.number("plant-corruption", options.plant_corruption, 0, UINT64_MAX,
               "after this event of each pass change one byte of a live block; 0 = never");
  flags.parse(argc, argv);
  if (options.plant_corruption && options.touch == "none") flags.fail("--plant-corruption needs --touch edges or full");
  return options;
}

// The events of the trace that are the program's own, sizes scaled. A bad trace ends the program.
inline std::vector<vramd::traces::Event> load_trace(const ReplayOptions& options) {
  using namespace vramd::traces;
  std::vector<Event> events;
  Reader reader(options.file);
  for (Event event; reader.next(event);) {
    if (!makes_live(event.op) && event.op != Op::release) continue;
    if (options.limit_events && events.size() == options.limit_events) return events;
    if (options.scale != 1) {
      const double scaled = std::floor(static_cast<double>(event.size) * options.scale);
      event.size = scaled < 1 ? 1 : scaled < 0x1p63 ? static_cast<std::uint64_t>(scaled) : std::uint64_t{1} << 63;
    }
    events.push_back(event);
  }
  if (!reader.error().empty()) {
    std::fprintf(stderr, "replay: %s\n", reader.error().c_str());
    std::exit(kExitUsage);
  }
  return events;
}
