// Kernels of trainer.cu at the two ends of the model: from tokens to vectors, and from vectors to the loss.
#pragma once

#include "tests/programs/trainer_dense_kernels.cuh"

// x = token vector + position vector; one thread per token and column.
extern "C" __global__ void embed(const int* tokens, const float* token_table, const float* position_table, float* x,
                                 int token_count, int context, int width) {
  const int index = global_index();
  if (index >= token_count * width) return;
  const int token = index / width;
  const int column = index % width;
  x[index] = token_table[tokens[token] * width + column] + position_table[token % context * width + column];
}

// One thread per entry of the table: it adds up the places where its token stands, so no two threads write
// one entry.
extern "C" __global__ void embed_backward_tokens(const int* tokens, const float* d_x, float* d_table, int token_count,
                                                 int vocab, int width) {
  const int index = global_index();
  if (index >= vocab * width) return;
  const int word = index / width;
  const int column = index % width;
  float sum = 0;
  for (int token = 0; token < token_count; ++token) {
    if (tokens[token] == word) sum += d_x[token * width + column];
  }
  d_table[index] = sum;
}

extern "C" __global__ void embed_backward_positions(const float* d_x, float* d_table, int token_count, int context, int width) {
  const int index = global_index();
  if (index >= context * width) return;
  float sum = 0;
  for (int first = 0; first < token_count; first += context) sum += d_x[first * width + index];
  d_table[index] = sum;
}

// Loss of each token and the gradient of the logits, times `weight`; one thread per token.
extern "C" __global__ void cross_entropy(const float* logits, const int* targets, float* losses, float* d_logits,
                                         int token_count, int vocab, float weight) {
  const int token = global_index();
  if (token >= token_count) return;
  const float* in = logits + token * vocab;
  float* out = d_logits + token * vocab;
  float largest = in[0];
  for (int i = 1; i < vocab; ++i) largest = in[i] > largest ? in[i] : largest;
  float sum = 0;
  for (int i = 0; i < vocab; ++i) {
    out[i] = expf(in[i] - largest);
    sum += out[i];
  }
  const int target = targets[token];
  losses[token] = logf(sum) - (in[target] - largest);
  for (int i = 0; i < vocab; ++i) out[i] = weight * (out[i] / sum - (i == target ? 1.0F : 0.0F));
}

// One thread in all: the order of a sum decides its last bits.
extern "C" __global__ void sum_losses(const float* losses, double* sum, int token_count) {
  if (global_index() != 0) return;
  double total = 0;
  for (int token = 0; token < token_count; ++token) total += static_cast<double>(losses[token]);
  *sum = total;
}
