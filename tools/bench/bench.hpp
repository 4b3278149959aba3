// What a bench is: a function that measures and returns rows. Single-threaded; benches run one after the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/bench/samples.hpp"

namespace vramd::bench {

struct Options {
  std::string folder;  // of the build: lib/libvramd.so and simgpu/libcuda.so.1 lie in it
  std::string shim;    // the library that is preloaded
  bool long_run = false;
};

// What was measured beside a case, in the same run.
struct Peer {
  std::string name;
  double value = 0;  // in the row's unit
};

struct Row {
  std::string name;
  std::string unit;
  Samples samples;  // the row's value is their median
  std::optional<Peer> peer;
  std::optional<double> at_most;  // target for the value
  bool is_control = false;        // a negative control: it passes when it misses its target

  double value() const { return samples.percentile(50); }
  bool passes() const { return !at_most || (value() <= *at_most) != is_control; }
};

struct Result {
  std::string bench;
  std::string device;   // on what it ran
  std::string profile;  // of the simulated card, "" without one
  std::vector<Row> rows;
};

// Throws std::runtime_error when it cannot measure.
Result run_startup(const Options& options);
Result run_sim(const Options& options);
Result run_gate(const Options& options);
Result run_grant(const Options& options);
Result run_giveback(const Options& options);

// The process in which run_gate() measures, since the library must be preloaded there: `vramd-bench kGateChild COUNT`.
inline constexpr const char* kGateChild = "--gate-child";
int run_gate_child(int pairs);

}  // namespace vramd::bench
