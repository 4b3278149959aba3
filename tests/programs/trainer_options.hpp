// The trainer's command line.
#pragma once

#include <algorithm>
#include <string>

#include "tests/programs/flags.hpp"
#include "tests/programs/trainer_network.hpp"

struct TrainerOptions {
  NetworkShape shape{};
  int batch = 0, steps = 0, streams = 0;
  float rate = 0;
  std::uint64_t seed = 0;
  AllocationCall call = AllocationCall::malloc;
  bool check = false;
};

inline TrainerOptions parse_trainer_options(int argc, char** argv) {
  std::uint64_t layers = 2, dim = 64, heads = 4, context = 32, vocab = 64, batch = 4, steps = 20, streams = 0, seed = 1;
  double rate = 0.003;
  std::string alloc = "malloc";
  TrainerOptions options;

  Flags flags("trainer");
  flags.number("layers", layers, 1, 1000, "transformer layers");
  flags.number("dim", dim, 1, 1 << 14, "width of the model, a multiple of --heads");
  flags.number("heads", heads, 1, 1 << 10, "attention heads");
  flags.number("context", context, 1, 1 << 14, "tokens per sequence");
  flags.number("vocab", vocab, 2, 1 << 20, "words of the language");
  flags.number("batch", batch, 1, 1 << 14, "sequences per step");
  flags.number("steps", steps, 0, 1000000000, "training steps");
  flags.real("lr", rate, "learning rate");
  flags.number("seed", seed, 0, UINT64_MAX, "seed of weights and text");
  flags.choice("alloc", alloc, {"malloc", "async"}, "cudaMalloc or cudaMallocAsync");
  flags.number("streams", streams, 0, 64, "split the batch over this many streams; 0 = legacy stream");
  flags.flag("check", options.check, "compare gradients with numerical ones instead of training");
  flags.parse(argc, argv);

  if (dim % heads != 0) {
    flags.fail("--dim " + std::to_string(dim) + " is not a multiple of --heads " + std::to_string(heads));
  }
  if (streams > 1 && batch % streams != 0) {
    flags.fail("--batch " + std::to_string(batch) + " is not a multiple of --streams " + std::to_string(streams));
  }
  // Kernels index with 32 bits.
  const std::uint64_t tokens = batch * context;
  const std::uint64_t largest =
      std::max({tokens * 4 * dim, tokens * vocab, tokens * heads * context, 4 * dim * dim, vocab * dim});
  if (largest > INT32_MAX) {
    flags.fail("the largest tensor has " + std::to_string(largest) + " elements; expected at most " +
               std::to_string(INT32_MAX) + ": lower --batch, --context, --dim or --vocab");
  }

  options.shape = {static_cast<int>(layers), static_cast<int>(dim), static_cast<int>(heads), static_cast<int>(context),
                   static_cast<int>(vocab)};
  options.batch = static_cast<int>(batch);
  options.steps = static_cast<int>(steps);
  options.streams = static_cast<int>(streams);
  options.rate = static_cast<float>(rate);
  options.seed = seed;
  options.call = alloc == "malloc" ? AllocationCall::malloc : AllocationCall::malloc_async;
  return options;
}
