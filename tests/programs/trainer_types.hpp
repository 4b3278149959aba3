// Parameters that the trainer's kernels take as structs.
#pragma once

// Element (i, j) is data[i * row_stride + j * column_stride]; a transposed matrix swaps the strides.
struct Matrix {
  const float* data;
  int row_stride;
  int column_stride;
};

struct AdamRates {
  float step, beta1, beta2, epsilon;
  float mean_correction, square_correction;  // 1 / (1 - beta^t)
};
