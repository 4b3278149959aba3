#include "tests/programs/replay_touch.hpp"

#include <unistd.h>

#include <algorithm>

#include "tests/programs/cuda_check.hpp"
#include "tests/programs/replay_kernels.cuh"

namespace {

constexpr std::uint64_t kEdgeStride = std::uint64_t{2} << 20, kEdgeLength = 64;
constexpr std::uint64_t kFullStride = 4096;
constexpr unsigned kThreads = 128;

unsigned grid_of(const TouchSpans& spans) { return static_cast<unsigned>((touch_span_count(spans) + kThreads - 1) / kThreads); }

TouchSpans spans_of(const Block& block, std::uint64_t stride, std::uint64_t length) {
  return {static_cast<unsigned char*>(block.data), block.size, stride, length};
}

}  // namespace

Toucher::Toucher(const std::string& mode, std::uint64_t block_count) : block_count_(block_count) {
  if (mode == "none") return;
  stride_ = mode == "edges" ? kEdgeStride : kFullStride;
  length_ = mode == "edges" ? kEdgeLength : kFullStride;
  // On the host, so that the device memory that others measure is the trace's alone.
  const std::size_t bytes = std::max<std::size_t>(block_count, 1) * sizeof *first_wrong_;
  REQUIRE_CUDA(cudaMallocHost(reinterpret_cast<void**>(&first_wrong_), bytes));
}

Toucher::~Toucher() {
  if (first_wrong_) REQUIRE_CUDA(cudaFreeHost(first_wrong_));
}

void Toucher::start_pass(std::uint64_t pass) {
  // The process id: another process may have left the same blocks of the same trace in the memory that comes
  // now.
  pass_tag_ = (static_cast<std::uint64_t>(::getpid()) << 40) + (pass << 32);
  if (!active()) return;
  REQUIRE_CUDA(cudaDeviceSynchronize());
  std::fill(first_wrong_, first_wrong_ + block_count_, kNothingWrong);
}

std::uint64_t Toucher::tag(const Block& block) const { return pass_tag_ + block.id; }

void Toucher::write(const Block& block, cudaStream_t stream) const {
  if (!active()) return;
  const TouchSpans spans = spans_of(block, stride_, length_);
  touch_write<<<grid_of(spans), kThreads, 0, stream>>>(spans, tag(block));
  require(cudaGetLastError(), "kernel touch_write", __FILE__, __LINE__);
}

void Toucher::check(const Block& block, cudaStream_t stream) {
  if (!active()) return;
  const TouchSpans spans = spans_of(block, stride_, length_);
  touch_check<<<grid_of(spans), kThreads, 0, stream>>>(spans, tag(block), first_wrong_ + block.id);
  require(cudaGetLastError(), "kernel touch_check", __FILE__, __LINE__);

  if (length_ == stride_) {
    verified_bytes_ += block.size;
  } else {
    // The span at the end may lie over the one before it; then its bytes are counted once.
    const std::uint64_t regular = (block.size - 1) / stride_ + 1, last = (regular - 1) * stride_;
    verified_bytes_ += (regular - 1) * length_ + std::min(block.size - last, 2 * length_);
  }
}

std::uint64_t Toucher::answer(std::uint64_t id, cudaStream_t stream) const {
  REQUIRE_CUDA(cudaStreamSynchronize(stream));
  return first_wrong_[id];
}

std::vector<std::uint64_t> Toucher::answers() const {
  if (!active()) return {};
  REQUIRE_CUDA(cudaDeviceSynchronize());
  return {first_wrong_, first_wrong_ + block_count_};
}

std::string Toucher::describe(const Block& block, std::uint64_t offset) const {
  unsigned char found = 0;
  REQUIRE_CUDA(cudaMemcpy(&found, static_cast<unsigned char*>(block.data) + offset, 1, cudaMemcpyDeviceToHost));
  char text[64];
  std::snprintf(text, sizeof text, "expected 0x%02x, found 0x%02x", touch_byte(tag(block), offset), found);
  return text;
}
