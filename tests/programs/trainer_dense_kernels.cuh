// Kernels of trainer.cu that work on rows and elements: products, norms, activations, the optimizer.
// Every sum is made by one thread in a fixed order, so the results of a run are the same bit for bit every
// time. extern "C": the name in the cubin is the name written here.
#pragma once

#include "tests/programs/trainer_types.hpp"

__device__ inline int global_index() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// Rows and columns of a product that one thread computes.
constexpr int kTileRows = 4, kTileColumns = 8;

// contiguous: all columns of the tile exist and lie side by side, so that they can be read as vectors. Both
// ways add in the same order.
template <bool contiguous>
__device__ inline void multiply_tile(const Matrix& a, const Matrix& b, const int (&row)[kTileRows],
                                     const int (&column)[kTileColumns], int inner, float (&sum)[kTileRows][kTileColumns]) {
  for (int k = 0; k < inner; ++k) {
    const float* b_row = b.data + k * b.row_stride;
    float right[kTileColumns];
    for (int j = 0; j < kTileColumns; ++j) {
      right[j] = contiguous ? b_row[column[0] + j] : b_row[column[j] * b.column_stride];
    }
    for (int i = 0; i < kTileRows; ++i) {
      const float left = a.data[row[i] * a.row_stride + k * a.column_stride];
      for (int j = 0; j < kTileColumns; ++j) sum[i][j] += left * right[j];
    }
  }
}

// c[rows][columns] = a[rows][inner] * b[inner][columns]; one thread per tile.
extern "C" __global__ void matmul(Matrix a, Matrix b, float* c, int rows, int columns, int inner) {
  const int tiles_across = (columns + kTileColumns - 1) / kTileColumns;
  const int tile = global_index();
  const int first_row = tile / tiles_across * kTileRows;
  const int first_column = tile % tiles_across * kTileColumns;
  if (first_row >= rows) return;

  // Indices past the edge are clamped: computed for nothing and not stored.
  int row[kTileRows], column[kTileColumns];
  for (int i = 0; i < kTileRows; ++i) row[i] = first_row + i < rows ? first_row + i : rows - 1;
  for (int j = 0; j < kTileColumns; ++j) column[j] = first_column + j < columns ? first_column + j : columns - 1;
  float sum[kTileRows][kTileColumns] = {};
  if (b.column_stride == 1 && first_column + kTileColumns <= columns) {
    multiply_tile<true>(a, b, row, column, inner, sum);
  } else {
    multiply_tile<false>(a, b, row, column, inner, sum);
  }
  for (int i = 0; i < kTileRows && first_row + i < rows; ++i) {
    for (int j = 0; j < kTileColumns && first_column + j < columns; ++j) {
      c[(first_row + i) * columns + first_column + j] = sum[i][j];
    }
  }
}

// sum may be a or b.
extern "C" __global__ void add(const float* a, const float* b, float* sum, int n) {
  const int i = global_index();
  if (i < n) sum[i] = a[i] + b[i];
}

constexpr float kNormEpsilon = 1e-5F;

// y = x / rms(x) * gain, row by row; `scale` keeps 1 / rms(x) for the backward pass. One thread per row.
extern "C" __global__ void rms_norm(const float* x, const float* gain, float* y, float* scale, int rows, int width) {
  const int row = global_index();
  if (row >= rows) return;
  const float* in = x + row * width;
  float squares = 0;
  for (int i = 0; i < width; ++i) squares += in[i] * in[i];
  const float factor = 1.0F / sqrtf(squares / static_cast<float>(width) + kNormEpsilon);
  scale[row] = factor;
  for (int i = 0; i < width; ++i) y[row * width + i] = in[i] * factor * gain[i];
}

// One thread per row.
extern "C" __global__ void rms_norm_backward(const float* d_y, const float* x, const float* gain, const float* scale,
                                             float* d_x, int rows, int width) {
  const int row = global_index();
  if (row >= rows) return;
  const float* in = x + row * width;
  const float* d_out = d_y + row * width;
  const float factor = scale[row];
  float along = 0;
  for (int i = 0; i < width; ++i) along += d_out[i] * gain[i] * in[i];
  along *= factor * factor / static_cast<float>(width);
  for (int i = 0; i < width; ++i) d_x[row * width + i] = factor * (d_out[i] * gain[i] - in[i] * along);
}

// One thread per column.
extern "C" __global__ void rms_norm_backward_gain(const float* d_y, const float* x, const float* scale, float* d_gain, int rows,
                                                  int width) {
  const int i = global_index();
  if (i >= width) return;
  float sum = 0;
  for (int row = 0; row < rows; ++row) sum += d_y[row * width + i] * x[row * width + i] * scale[row];
  d_gain[i] = sum;
}

// GELU in its tanh form.
constexpr float kGeluSlope = 0.7978845608F, kGeluCubic = 0.044715F;

extern "C" __global__ void gelu(const float* x, float* y, int n) {
  const int i = global_index();
  if (i >= n) return;
  const float v = x[i];
  y[i] = 0.5F * v * (1.0F + tanhf(kGeluSlope * (v + kGeluCubic * v * v * v)));
}

extern "C" __global__ void gelu_backward(const float* d_y, const float* x, float* d_x, int n) {
  const int i = global_index();
  if (i >= n) return;
  const float v = x[i];
  const float t = tanhf(kGeluSlope * (v + kGeluCubic * v * v * v));
  const float inner_slope = kGeluSlope * (1.0F + 3.0F * kGeluCubic * v * v);
  d_x[i] = d_y[i] * (0.5F * (1.0F + t) + 0.5F * v * (1.0F - t * t) * inner_slope);
}

// One step of Adam without weight decay.
extern "C" __global__ void adam(float* weight, const float* gradient, float* mean, float* square, int n, AdamRates rates) {
  const int i = global_index();
  if (i >= n) return;
  const float g = gradient[i];
  mean[i] = rates.beta1 * mean[i] + (1.0F - rates.beta1) * g;
  square[i] = rates.beta2 * square[i] + (1.0F - rates.beta2) * g * g;
  weight[i] -= rates.step * (mean[i] * rates.mean_correction) / (sqrtf(square[i] * rates.square_correction) + rates.epsilon);
}
