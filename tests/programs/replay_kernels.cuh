// Kernels of replay.cpp: they write a pattern into spans of a block and look for bytes that are not it.
#pragma once

// Spans of `length` bytes at every multiple of `stride`, and one that ends where the block ends.
struct TouchSpans {
  unsigned char* block;  // aligned to 8 bytes
  unsigned long long size, stride, length;
};

__host__ __device__ inline unsigned long long touch_span_count(const TouchSpans& spans) {
  return (spans.size - 1) / spans.stride + 2;
}

__host__ __device__ inline unsigned long long touch_span_begin(const TouchSpans& spans, unsigned long long index) {
  if (index + 1 < touch_span_count(spans)) return index * spans.stride;
  return spans.size > spans.length ? spans.size - spans.length : 0;
}

__host__ __device__ inline unsigned long long touch_span_end(const TouchSpans& spans, unsigned long long begin) {
  return spans.size - begin < spans.length ? spans.size : begin + spans.length;
}

// The 8 bytes at offset 8 * word of the block `tag`.
__host__ __device__ inline unsigned long long touch_word(unsigned long long tag, unsigned long long word) {
  unsigned long long z = tag * 0x9e3779b97f4a7c15ULL + word * 0xd1342543de82ef95ULL + 1;
  z = (z ^ (z >> 32)) * 0xbf58476d1ce4e5b9ULL;
  return z ^ (z >> 29);
}

__host__ __device__ inline unsigned char touch_byte(unsigned long long tag, unsigned long long offset) {
  return static_cast<unsigned char>(touch_word(tag, offset / 8) >> (offset % 8 * 8));
}

__device__ inline unsigned long long touch_index() {
  return static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// One thread per span.
extern "C" __global__ void touch_write(TouchSpans spans, unsigned long long tag) {
  const unsigned long long index = touch_index();
  if (index >= touch_span_count(spans)) return;
  unsigned long long offset = touch_span_begin(spans, index);
  const unsigned long long end = touch_span_end(spans, offset);
  for (; offset < end && offset % 8 != 0; ++offset) spans.block[offset] = touch_byte(tag, offset);
  for (; offset + 8 <= end; offset += 8) {
    *reinterpret_cast<unsigned long long*>(spans.block + offset) = touch_word(tag, offset / 8);
  }
  for (; offset < end; ++offset) spans.block[offset] = touch_byte(tag, offset);
}

// *first_wrong becomes the smallest offset of a wrong byte, if that is smaller than what is there. One thread
// per span.
extern "C" __global__ void touch_check(TouchSpans spans, unsigned long long tag, unsigned long long* first_wrong) {
  const unsigned long long index = touch_index();
  if (index >= touch_span_count(spans)) return;
  unsigned long long offset = touch_span_begin(spans, index);
  const unsigned long long end = touch_span_end(spans, offset);
  while (offset < end) {
    const bool whole = offset % 8 == 0 && offset + 8 <= end;
    if (whole && *reinterpret_cast<const unsigned long long*>(spans.block + offset) == touch_word(tag, offset / 8)) {
      offset += 8;
      continue;
    }
    if (spans.block[offset] != touch_byte(tag, offset)) {
      atomicMin(first_wrong, offset);
      return;
    }
    ++offset;
  }
}
