// Synthetic traces: the allocations of a training job, from the shape of its model. Deterministic: the same
// shape gives the same events everywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tools/traces/event.hpp"

namespace vramd::traces {

// A decoder-only transformer trained in mixed precision (half activations, fp32 weights, gradients and Adam
// state) with fused attention. The defaults are GPT-2 small.
struct TransformerShape {
  std::uint64_t layers = 12;
  std::uint64_t dim = 768;  // width; the feed-forward part is 4 times as wide
  std::uint64_t heads = 12;
  std::uint64_t vocab = 50257;
  std::uint64_t batch = 8;
  std::uint64_t context = 1024;   // tokens per sequence
  std::uint64_t context_min = 0;  // > 0: each step draws its length uniformly from [context_min, context]
  std::uint64_t steps = 3;
  std::uint64_t streams = 1;  // 2: batches are fetched ahead and gradients reduced on a second stream
  std::uint64_t seed = 1;     // of lengths and times
};

// Empty when the shape is usable, else what is wrong and what is expected.
std::string check_shape(const TransformerShape& shape);

// Hands the events to `sink` in order. The weights are present from the beginning; optimizer state is
// allocated in the first step and stays; gradients die at the start of the next step. Requires a shape that
// check_shape() accepts.
void generate_transformer(const TransformerShape& shape, const std::function<void(const Event&)>& sink);

}  // namespace vramd::traces
