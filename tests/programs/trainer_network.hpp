// The language model of the trainer: embedding, transformer layers (causal attention and a feed-forward part,
// both behind an RMS norm), and a head. No dropout, no biases.
#pragma once

#include <string>
#include <vector>

#include "tests/programs/trainer_memory.hpp"
#include "tests/programs/trainer_text.hpp"
#include "tests/programs/trainer_types.hpp"

struct NetworkShape {
  int layers, dim, heads, context, vocab;
};

struct Parameter {
  std::string name;
  std::size_t size;
  float spread;  // initial values are uniform in [-spread, spread]; 0: all are 1
};

std::vector<Parameter> list_parameters(const NetworkShape& shape);

// Tokens of some sequences and what follows each, on the device.
struct DeviceBatch {
  DeviceBatch(Memory& memory, cudaStream_t stream, const Batch& batch, int context, int first, int count);

  Array<int> tokens, targets;
  int sequences;
};

class Network {
 public:
  Network(const NetworkShape& shape, Memory& memory, std::uint64_t seed);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Tensor>& weights() const { return weights_; }
  std::vector<Tensor>& weights() { return weights_; }

  // Enqueues the forward and the backward pass of a batch on `stream`. Returns the gradients, in the order of
  // parameters(), of token_weight * (sum of the tokens' losses); that sum itself, unweighted, goes to
  // loss_sum.
  std::vector<Tensor> gradients(cudaStream_t stream, const DeviceBatch& batch, float token_weight, double* loss_sum);

 private:
  NetworkShape shape_;
  Memory& memory_;
  std::vector<Parameter> parameters_;
  std::vector<Tensor> weights_;
};

// target += summand, on `stream`.
void add_to(cudaStream_t stream, const Tensor& target, const Tensor& summand);

class Adam {
 public:
  Adam(const Network& network, Memory& memory, float rate);

  // Enqueues one step on the legacy stream or `stream`.
  void step(cudaStream_t stream, Network& network, const std::vector<Tensor>& gradients);

 private:
  float rate_;
  int steps_ = 0;
  std::vector<Tensor> means_, squares_;
};
