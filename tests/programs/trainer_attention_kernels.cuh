// Causal self-attention of trainer.cu. qkv has one row per token: query, key and value, each heads * head_dim
// wide. Scores and probabilities are [batch][heads][query][key]; those of keys after the query are 0 and
// never read.
#pragma once

#include "tests/programs/trainer_dense_kernels.cuh"

struct AttentionShape {
  int batch, heads, context, head_dim;

  __host__ __device__ int width() const { return heads * head_dim; }
  __host__ __device__ int tokens() const { return batch * context; }
  __host__ __device__ int score_rows() const { return batch * heads * context; }
  __host__ __device__ int scores() const { return score_rows() * context; }
};

enum QkvPart { kQuery = 0, kKey = 1, kValue = 2 };

// Where the vector of a token begins for one head. `sequence_head` = sequence * heads + head.
__device__ inline int qkv_offset(const AttentionShape& shape, int sequence_head, int position, QkvPart part) {
  const int token = sequence_head / shape.heads * shape.context + position;
  const int head = sequence_head % shape.heads;
  return token * 3 * shape.width() + static_cast<int>(part) * shape.width() + head * shape.head_dim;
}

__device__ inline int output_offset(const AttentionShape& shape, int sequence_head, int position) {
  const int token = sequence_head / shape.heads * shape.context + position;
  return token * shape.width() + sequence_head % shape.heads * shape.head_dim;
}

__device__ inline float dot(const float* a, const float* b, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// One thread per score.
extern "C" __global__ void attention_scores(const float* qkv, float* scores, AttentionShape shape) {
  const int index = global_index();
  if (index >= shape.scores()) return;
  const int key = index % shape.context;
  const int query = index / shape.context % shape.context;
  const int sequence_head = index / (shape.context * shape.context);
  float score = 0;
  if (key <= query) {
    score = dot(qkv + qkv_offset(shape, sequence_head, query, kQuery), qkv + qkv_offset(shape, sequence_head, key, kKey),
                shape.head_dim) /
            sqrtf(static_cast<float>(shape.head_dim));
  }
  scores[index] = score;
}

// One thread per row of scores.
extern "C" __global__ void causal_softmax(const float* scores, float* probabilities, AttentionShape shape) {
  const int row = global_index();
  if (row >= shape.score_rows()) return;
  const int query = row % shape.context;
  const float* in = scores + row * shape.context;
  float* out = probabilities + row * shape.context;
  float largest = in[0];
  for (int key = 1; key <= query; ++key) largest = in[key] > largest ? in[key] : largest;
  float sum = 0;
  for (int key = 0; key <= query; ++key) {
    out[key] = expf(in[key] - largest);
    sum += out[key];
  }
  for (int key = 0; key < shape.context; ++key) out[key] = key <= query ? out[key] / sum : 0.0F;
}

// mixed = probabilities * values; one thread per token and column.
extern "C" __global__ void attention_mix(const float* probabilities, const float* qkv, float* mixed, AttentionShape shape) {
  const int index = global_index();
  if (index >= shape.tokens() * shape.width()) return;
  const int column = index % shape.width();
  const int query = index / shape.width() % shape.context;
  const int sequence = index / (shape.width() * shape.context);
  const int sequence_head = sequence * shape.heads + column / shape.head_dim;
  const float* row = probabilities + (sequence_head * shape.context + query) * shape.context;
  const float* value = qkv + qkv_offset(shape, sequence_head, 0, kValue) + column % shape.head_dim;
  float sum = 0;
  for (int key = 0; key <= query; ++key) sum += row[key] * value[key * 3 * shape.width()];
  mixed[index] = sum;
}

// One thread per probability.
extern "C" __global__ void attention_mix_backward(const float* d_mixed, const float* qkv, float* d_probabilities,
                                                  AttentionShape shape) {
  const int index = global_index();
  if (index >= shape.scores()) return;
  const int key = index % shape.context;
  const int query = index / shape.context % shape.context;
  const int sequence_head = index / (shape.context * shape.context);
  float gradient = 0;
  if (key <= query) {
    gradient = dot(d_mixed + output_offset(shape, sequence_head, query), qkv + qkv_offset(shape, sequence_head, key, kValue),
                   shape.head_dim);
  }
  d_probabilities[index] = gradient;
}

// One thread per row of scores.
extern "C" __global__ void causal_softmax_backward(const float* d_probabilities, const float* probabilities, float* d_scores,
                                                   AttentionShape shape) {
  const int row = global_index();
  if (row >= shape.score_rows()) return;
  const int query = row % shape.context;
  const int first = row * shape.context;
  const float mean = dot(d_probabilities + first, probabilities + first, query + 1);
  for (int key = 0; key < shape.context; ++key) {
    const int i = first + key;
    d_scores[i] = key <= query ? probabilities[i] * (d_probabilities[i] - mean) : 0.0F;
  }
}

// Gradients of query, key and value; one thread per token and column of qkv.
extern "C" __global__ void attention_backward(const float* d_scores, const float* probabilities, const float* d_mixed,
                                              const float* qkv, float* d_qkv, AttentionShape shape) {
  const int index = global_index();
  const int row_width = 3 * shape.width();
  if (index >= shape.tokens() * row_width) return;
  const int column = index % shape.width();
  const auto part = static_cast<QkvPart>(index % row_width / shape.width());
  const int position = index / row_width % shape.context;
  const int sequence_head = index / row_width / shape.context * shape.heads + column / shape.head_dim;
  const int offset = column % shape.head_dim;
  const int first = sequence_head * shape.context * shape.context;
  const float scale = 1.0F / sqrtf(static_cast<float>(shape.head_dim));

  float sum = 0;
  if (part == kQuery) {
    for (int key = 0; key <= position; ++key) {
      sum += d_scores[first + position * shape.context + key] * qkv[qkv_offset(shape, sequence_head, key, kKey) + offset];
    }
    sum *= scale;
  } else if (part == kKey) {
    for (int query = position; query < shape.context; ++query) {
      sum += d_scores[first + query * shape.context + position] * qkv[qkv_offset(shape, sequence_head, query, kQuery) + offset];
    }
    sum *= scale;
  } else {
    for (int query = position; query < shape.context; ++query) {
      sum += probabilities[first + query * shape.context + position] *
             d_mixed[output_offset(shape, sequence_head, query) + offset];
    }
  }
  d_qkv[index] = sum;
}
