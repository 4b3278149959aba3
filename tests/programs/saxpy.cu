// saxpy [n] [repeat]: adds 2*x to y `repeat` times on the GPU and checks every element.
// Exit: 0 right, 1 wrong result, 2 CUDA error, 64 usage.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/programs/cuda_check.hpp"
#include "tests/programs/saxpy_kernels.cuh"

namespace {

constexpr float kFactor = 2.0F;
constexpr int kThreads = 256;
// The sums stay integers below 2^24, so that single precision is exact, fused multiply-add or not.
constexpr int kPeriod = 1000;
constexpr long kLargestRepeat = 8000;

long number(const char* text, long lowest, long highest) {
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < lowest || value > highest) {
    std::fprintf(stderr, "saxpy: '%s' is not a number from %ld to %ld\nusage: saxpy [n] [repeat]\n", text, lowest, highest);
    std::exit(kExitUsage);
  }
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && (std::strcmp(argv[1], "-h") == 0 || std::strcmp(argv[1], "--help") == 0)) {
    std::printf("usage: saxpy [n] [repeat]: y = a x + y of n elements, repeated; every element is checked\n");
    return 0;
  }
  const int n = argc > 1 ? static_cast<int>(number(argv[1], 1, 1L << 30)) : 1 << 20;
  const long repeat = argc > 2 ? number(argv[2], 1, kLargestRepeat) : 1;

  int device = 0;
  cudaDeviceProp properties{};
  REQUIRE_CUDA(cudaGetDevice(&device));
  REQUIRE_CUDA(cudaGetDeviceProperties(&properties, device));
  std::printf("device %d: %s, %zu MiB, sm_%d%d\n", device, properties.name, properties.totalGlobalMem >> 20, properties.major,
              properties.minor);

  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(float);
  std::vector<float> x(static_cast<std::size_t>(n)), y(static_cast<std::size_t>(n), 1.0F);
  for (int i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i % kPeriod);

  float* device_x = nullptr;
  float* device_y = nullptr;
  REQUIRE_CUDA(cudaMalloc(&device_x, bytes));
  REQUIRE_CUDA(cudaMalloc(&device_y, bytes));
  REQUIRE_CUDA(cudaMemcpy(device_x, x.data(), bytes, cudaMemcpyHostToDevice));
  REQUIRE_CUDA(cudaMemcpy(device_y, y.data(), bytes, cudaMemcpyHostToDevice));
  for (long round = 0; round < repeat; ++round) {
    saxpy<<<static_cast<unsigned>((n - 1) / kThreads + 1), kThreads>>>(n, kFactor, device_x, device_y);
    REQUIRE_CUDA(cudaGetLastError());
  }
  REQUIRE_CUDA(cudaDeviceSynchronize());
  REQUIRE_CUDA(cudaMemcpy(y.data(), device_y, bytes, cudaMemcpyDeviceToHost));
  REQUIRE_CUDA(cudaFree(device_x));
  REQUIRE_CUDA(cudaFree(device_y));

  long wrong = 0;
  for (std::size_t i = 0; i < y.size(); ++i)
    if (y[i] != 1.0F + static_cast<float>(repeat) * kFactor * x[i]) ++wrong;
  if (wrong != 0) {
    std::printf("wrong: %ld of %d elements\n", wrong, n);
    return kExitWrongResult;
  }
  std::printf("ok: %d elements, %ld times\n", n, repeat);
  return 0;
}
