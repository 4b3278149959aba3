// Devices, allocation, copies, fills, attributes of pointers, errors.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "tests/programs/runtime_checks.hpp"

__constant__ float constants[4];
__device__ int started_with[3] = {7, 8, 9};
__device__ int zeros[5];

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::vector<int> numbers(std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

Verdict versions_and_device() {
  int driver = 0, runtime = 0, warp = 0;
  TRY(cudaDriverGetVersion(&driver));
  TRY(cudaRuntimeGetVersion(&runtime));
  EXPECT(driver >= 13000 && runtime >= 13000);
  cudaDeviceProp properties{};
  TRY(cudaGetDeviceProperties(&properties, 0));
  TRY(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 0));
  EXPECT(properties.name[0] != '\0' && properties.totalGlobalMem > 0 && properties.multiProcessorCount > 0);
  EXPECT(warp == 32 && properties.warpSize == 32);
  return {};
}

Verdict invalid_device() {
  EXPECT(cudaSetDevice(9999) == cudaErrorInvalidDevice);
  EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);
  int device = -1;
  TRY(cudaGetDevice(&device));
  EXPECT(device == 0);
  return {};
}

Verdict copies_of_all_kinds() {
  const auto in = numbers(5000);
  std::vector<int> out(in.size()), back(in.size());
  const std::size_t bytes = in.size() * sizeof(int);
  DeviceArray<int> a(in.size()), b(in.size());
  TRY(a.error());
  TRY(b.error());
  TRY(cudaMemcpy(a.get(), in.data(), bytes, cudaMemcpyHostToDevice));
  TRY(cudaMemcpy(b.get(), a.get(), bytes, cudaMemcpyDeviceToDevice));
  TRY(cudaMemcpy(out.data(), b.get(), bytes, cudaMemcpyDeviceToHost));
  EXPECT(out == in);
  TRY(cudaMemcpy(back.data(), out.data(), bytes, cudaMemcpyHostToHost));
  EXPECT(back == in);
  TRY(cudaMemset(b.get(), 0, bytes));
  TRY(cudaMemcpy(b.get(), in.data(), bytes, cudaMemcpyDefault));
  std::fill(out.begin(), out.end(), 0);
  TRY(cudaMemcpy(out.data(), b.get(), bytes, cudaMemcpyDefault));
  EXPECT(out == in);
  return {};
}

Verdict copies_inside_an_allocation() {
  const auto in = numbers(1000);
  std::vector<int> out(100);
  DeviceArray<int> a(in.size());
  TRY(a.error());
  TRY(cudaMemcpy(a.get(), in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice));
  TRY(cudaMemcpy(a.get() + 500, a.get() + 10, 100 * sizeof(int), cudaMemcpyDeviceToDevice));
  TRY(cudaMemcpy(out.data(), a.get() + 500, 100 * sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(out.front() == 11 && out.back() == 110);
  return {};
}

Verdict asynchronous_copies() {
  const auto in = numbers(3000);
  std::vector<int> out(in.size());
  const std::size_t bytes = in.size() * sizeof(int);
  DeviceArray<int> a(in.size()), b(in.size());
  TRY(a.error());
  TRY(b.error());
  cudaStream_t stream = nullptr;
  TRY(cudaStreamCreate(&stream));
  TRY(cudaMemcpyAsync(a.get(), in.data(), bytes, cudaMemcpyHostToDevice, stream));
  TRY(cudaMemcpyAsync(b.get(), a.get(), bytes, cudaMemcpyDeviceToDevice, stream));
  TRY(cudaMemcpyAsync(out.data(), b.get(), bytes, cudaMemcpyDefault, stream));
  TRY(cudaStreamSynchronize(stream));
  TRY(cudaStreamDestroy(stream));
  EXPECT(out == in);
  return {};
}

Verdict two_dimensions() {
  constexpr std::size_t kWidth = 100, kHeight = 7;
  std::vector<std::uint8_t> in(kWidth * kHeight), out(kWidth * kHeight);
  std::iota(in.begin(), in.end(), std::uint8_t{0});
  void* pointer = nullptr;
  std::size_t pitch = 0;
  TRY(cudaMallocPitch(&pointer, &pitch, kWidth, kHeight));
  EXPECT(pitch >= kWidth);
  TRY(cudaMemcpy2D(pointer, pitch, in.data(), kWidth, kWidth, kHeight, cudaMemcpyHostToDevice));
  TRY(cudaMemset2D(pointer, pitch, 0xee, 10, 2));
  TRY(cudaMemcpy2D(out.data(), kWidth, pointer, pitch, kWidth, kHeight, cudaMemcpyDeviceToHost));
  TRY(cudaFree(pointer));
  for (std::size_t y = 0; y < kHeight; ++y)
    for (std::size_t x = 0; x < kWidth; ++x) {
      const std::uint8_t expected = x < 10 && y < 2 ? 0xee : in[y * kWidth + x];
      EXPECT(out[y * kWidth + x] == expected);
    }
  return {};
}

Verdict three_dimensions() {
  const cudaExtent extent = make_cudaExtent(24, 5, 3);
  std::vector<std::uint8_t> in(24 * 5 * 3), out(in.size());
  std::iota(in.begin(), in.end(), std::uint8_t{1});
  cudaPitchedPtr device{};
  TRY(cudaMalloc3D(&device, extent));
  cudaMemcpy3DParms copy{};
  copy.extent = extent;
  copy.srcPtr = make_cudaPitchedPtr(in.data(), 24, 24, 5);
  copy.dstPtr = device;
  copy.kind = cudaMemcpyHostToDevice;
  TRY(cudaMemcpy3D(&copy));
  copy.srcPtr = device;
  copy.dstPtr = make_cudaPitchedPtr(out.data(), 24, 24, 5);
  copy.kind = cudaMemcpyDeviceToHost;
  TRY(cudaMemcpy3D(&copy));
  TRY(cudaFree(device.ptr));
  EXPECT(out == in);
  return {};
}

Verdict memset_and_odd_ends() {
  std::vector<std::uint8_t> out(1001);
  DeviceArray<std::uint8_t> a(out.size());
  TRY(a.error());
  TRY(cudaMemset(a.get(), 0x11, out.size()));
  TRY(cudaMemset(a.get() + 3, 0xab, 995));
  TRY(cudaMemcpy(out.data(), a.get(), out.size(), cudaMemcpyDeviceToHost));
  EXPECT(out[2] == 0x11 && out[3] == 0xab && out[997] == 0xab && out[998] == 0x11);
  return {};
}

Verdict zero_sizes() {
  void* pointer = &pointer;
  TRY(cudaMalloc(&pointer, 0));
  EXPECT(pointer == nullptr);
  TRY(cudaFree(nullptr));
  TRY(cudaFreeHost(nullptr));
  TRY(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  TRY(cudaMemset(nullptr, 0, 0));
  return {};
}

Verdict out_of_memory() {
  std::size_t free = 0, total = 0;
  TRY(cudaMemGetInfo(&free, &total));
  void* pointer = nullptr;
  EXPECT(cudaMalloc(&pointer, total + (std::size_t{1} << 30)) == cudaErrorMemoryAllocation);
  EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
  EXPECT(cudaGetLastError() == cudaSuccess);
  DeviceArray<char> a(kMiB);  // an allocation that fits is served afterwards
  TRY(a.error());
  return {};
}

Verdict memory_info_follows() {
  std::size_t before = 0, during = 0, total = 0;
  TRY(cudaMemGetInfo(&before, &total));
  DeviceArray<char> a(64 * kMiB);
  TRY(a.error());
  TRY(cudaMemGetInfo(&during, &total));
  EXPECT(during <= before && before <= total);
  return {};
}

Verdict double_free() {
  DeviceArray<char> a(kMiB);
  TRY(a.error());
  char* pointer = a.release();
  TRY(cudaFree(pointer));
  EXPECT(cudaFree(pointer) == cudaErrorInvalidValue);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  return {};
}

Verdict foreign_free() {
  int on_the_stack = 0;
  EXPECT(cudaFree(&on_the_stack) == cudaErrorInvalidValue);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  return {};
}

Verdict error_names() {
  EXPECT(std::strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") == 0);
  EXPECT(std::strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
  EXPECT(std::strcmp(cudaGetErrorName(cudaSuccess), "cudaSuccess") == 0);
  EXPECT(std::strlen(cudaGetErrorString(static_cast<cudaError_t>(54321))) > 0);
  return {};
}

Verdict attributes_of_device_memory() {
  DeviceArray<float> a(1000);
  TRY(a.error());
  cudaPointerAttributes attributes{};
  TRY(cudaPointerGetAttributes(&attributes, a.get() + 17));
  EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  EXPECT(attributes.devicePointer == a.get() + 17);
  return {};
}

Verdict attributes_of_unknown_memory() {
  int on_the_stack = 0;
  cudaPointerAttributes attributes{};
  TRY(cudaPointerGetAttributes(&attributes, &on_the_stack));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
  return {};
}

Verdict pinned_memory() {
  int* host = nullptr;
  TRY(cudaMallocHost(&host, 4096));
  cudaPointerAttributes attributes{};
  TRY(cudaPointerGetAttributes(&attributes, host));
  EXPECT(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == host);
  host[0] = 4711;
  DeviceArray<int> a(1);
  TRY(a.error());
  TRY(cudaMemcpyAsync(a.get(), host, sizeof(int), cudaMemcpyHostToDevice, nullptr));
  TRY(cudaMemcpyAsync(host + 1, a.get(), sizeof(int), cudaMemcpyDeviceToHost, nullptr));
  TRY(cudaStreamSynchronize(nullptr));
  EXPECT(host[1] == 4711);
  TRY(cudaFreeHost(host));
  return {};
}

Verdict registered_memory() {
  void* pages = std::aligned_alloc(4096, 8192);
  TRY(cudaHostRegister(pages, 8192, cudaHostRegisterDefault));
  cudaPointerAttributes attributes{};
  TRY(cudaPointerGetAttributes(&attributes, pages));
  EXPECT(attributes.type == cudaMemoryTypeHost);
  void* device = nullptr;
  TRY(cudaHostGetDevicePointer(&device, pages, 0));
  EXPECT(device != nullptr);
  TRY(cudaHostUnregister(pages));
  std::free(pages);
  return {};
}

Verdict constant_and_device_variables() {
  const float in[4] = {1, 2, 3, 4};
  float out[4] = {};
  TRY(cudaMemcpyToSymbol(constants, in, sizeof(in)));
  TRY(cudaMemcpyFromSymbol(out, constants, sizeof(out)));
  EXPECT(std::memcmp(in, out, sizeof(in)) == 0);
  TRY(cudaMemcpyFromSymbol(out, constants, sizeof(float), 2 * sizeof(float)));
  EXPECT(out[0] == 3);
  int start[3] = {}, zero[5] = {1, 1, 1, 1, 1};
  TRY(cudaMemcpyFromSymbol(start, started_with, sizeof(start)));
  TRY(cudaMemcpyFromSymbol(zero, zeros, sizeof(zero)));
  EXPECT(start[0] == 7 && start[2] == 9 && zero[0] == 0 && zero[4] == 0);
  std::size_t size = 0;
  void* address = nullptr;
  TRY(cudaGetSymbolSize(&size, started_with));
  TRY(cudaGetSymbolAddress(&address, started_with));
  EXPECT(size == sizeof(start) && address != nullptr);
  EXPECT(cudaMemcpyToSymbol(constants, in, sizeof(in), sizeof(float)) == cudaErrorInvalidValue);
  (void)cudaGetLastError();
  return {};
}

Verdict limits_and_priorities() {
  int least = 1, greatest = 1;
  TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT(greatest <= least);
  return {};
}

}  // namespace

std::vector<Check> memory_checks() {
  return {{"device: versions, properties, attributes", versions_and_device},
          {"device: an invalid one is refused", invalid_device},
          {"device: range of stream priorities", limits_and_priorities},
          {"copy: all kinds", copies_of_all_kinds},
          {"copy: from one place of an allocation to another", copies_inside_an_allocation},
          {"copy: asynchronous, in stream order", asynchronous_copies},
          {"copy: two dimensions, with a pitched fill", two_dimensions},
          {"copy: three dimensions", three_dimensions},
          {"fill: odd addresses and lengths", memset_and_odd_ends},
          {"memory: zero sizes and null pointers", zero_sizes},
          {"memory: too much is error 2, and the next one fits", out_of_memory},
          {"memory: what is free follows", memory_info_follows},
          {"memory: the second free is an error", double_free},
          {"memory: free of a host pointer is an error", foreign_free},
          {"errors: names and texts", error_names},
          {"pointer: device memory", attributes_of_device_memory},
          {"pointer: memory that CUDA does not know", attributes_of_unknown_memory},
          {"host: pinned memory", pinned_memory},
          {"host: registered memory", registered_memory},
          {"symbols: constant and device variables", constant_and_device_variables}};
}
