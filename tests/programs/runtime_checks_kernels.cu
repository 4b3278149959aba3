// Launches of all forms, managed memory, attributes of kernels, driver entry points.
#include "tests/programs/runtime_checks_kernels.cuh"

#include "tests/programs/runtime_checks.hpp"

void launch_add_to_each(int* values, int amount, int n, cudaStream_t stream) {
  add_to_each<<<n / 128, 128, 0, stream>>>(values, amount, n);
}

namespace {

Verdict struct_parameter() {
  Recipe recipe{};
  recipe.parts[4] = 3;
  recipe.salt = 2;
  DeviceArray<int> ints(200);
  DeviceArray<float> floats(200);
  TRY(ints.error());
  TRY(floats.error());
  fill<int><<<4, 64>>>(ints.get(), recipe, 37, 200);
  fill<float><<<4, 64>>>(floats.get(), recipe, 0.5F, 200);
  TRY(cudaGetLastError());
  TRY(cudaDeviceSynchronize());
  std::vector<int> int_out(200);
  std::vector<float> float_out(200);
  TRY(cudaMemcpy(int_out.data(), ints.get(), 200 * sizeof(int), cudaMemcpyDeviceToHost));
  TRY(cudaMemcpy(float_out.data(), floats.get(), 200 * sizeof(float), cudaMemcpyDeviceToHost));
  EXPECT(int_out.front() == 42 && int_out.back() == 42);
  EXPECT(float_out.front() == 5.5F && float_out.back() == 5.5F);
  return {};
}

Verdict geometry() {
  const dim3 grid(3, 2, 2), block(4, 3, 2);
  constexpr unsigned kBlocks = 12, kThreads = 24;
  DeviceArray<unsigned> cells(kBlocks * kThreads);
  TRY(cells.error());
  coordinates<<<grid, block>>>(cells.get());
  TRY(cudaGetLastError());
  std::vector<unsigned> out(kBlocks * kThreads);
  TRY(cudaMemcpy(out.data(), cells.get(), out.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (unsigned b = 0; b < kBlocks; ++b)
    for (unsigned t = 0; t < kThreads; ++t) EXPECT(out[b * kThreads + t] == b * 1000 + t);
  return {};
}

Verdict parameters_are_copied_at_the_launch() {
  DeviceArray<int> values(1);
  TRY(values.error());
  TRY(cudaMemset(values.get(), 0, sizeof(int)));
  int* pointer = values.get();
  int amount = 5, count = 1;
  void* arguments[] = {&pointer, &amount, &count};
  TRY(cudaLaunchKernel(reinterpret_cast<const void*>(add_to_each), dim3(1), dim3(1), arguments, 0, nullptr));
  pointer = nullptr;
  amount = 1000;
  count = 0;
  int out = 0;
  TRY(cudaMemcpy(&out, values.get(), sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(out == 5);
  return {};
}

Verdict launch_with_a_configuration() {
  DeviceArray<int> values(64);
  TRY(values.error());
  TRY(cudaMemset(values.get(), 0, 64 * sizeof(int)));
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(2);
  config.blockDim = dim3(32);
  TRY(cudaLaunchKernelEx(&config, add_to_each, values.get(), 6, 64));
  int out[64] = {};
  TRY(cudaMemcpy(out, values.get(), sizeof(out), cudaMemcpyDeviceToHost));
  EXPECT(out[0] == 6 && out[63] == 6);
  return {};
}

Verdict cooperative_launch() {
  DeviceArray<int> values(64);
  TRY(values.error());
  TRY(cudaMemset(values.get(), 0, 64 * sizeof(int)));
  int* pointer = values.get();
  int amount = 8, count = 64;
  void* arguments[] = {&pointer, &amount, &count};
  TRY(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(add_to_each), dim3(2), dim3(32), arguments, 0, nullptr));
  int out[64] = {};
  TRY(cudaMemcpy(out, values.get(), sizeof(out), cudaMemcpyDeviceToHost));
  EXPECT(out[0] == 8 && out[63] == 8);
  return {};
}

Verdict atomics_across_streams() {
  DeviceArray<unsigned long long> counter(1);
  TRY(counter.error());
  TRY(cudaMemset(counter.get(), 0, sizeof(unsigned long long)));
  TRY(cudaDeviceSynchronize());  // a fill may still run, and non-blocking streams do not wait for the default
                                 // one
  cudaStream_t streams[2] = {};
  for (cudaStream_t& stream : streams) TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < 5; ++round)
    for (cudaStream_t stream : streams) count_threads<<<64, 256, 0, stream>>>(counter.get(), 3);
  TRY(cudaGetLastError());
  TRY(cudaDeviceSynchronize());
  for (cudaStream_t stream : streams) TRY(cudaStreamDestroy(stream));
  unsigned long long out = 0;
  TRY(cudaMemcpy(&out, counter.get(), sizeof(out), cudaMemcpyDeviceToHost));
  EXPECT(out == 2ULL * 5 * 64 * 256 * 3);
  return {};
}

Verdict shared_memory_and_barriers() {
  constexpr unsigned kBlocks = 3, kThreads = 256;
  std::vector<float> in(kBlocks * kThreads), sums(kBlocks), expected(kThreads);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = 1.0F / static_cast<float>(i + 1) * (i % 3 == 0 ? -1.0F : 1.0F);
  std::vector<unsigned> negatives(kBlocks);
  DeviceArray<float> values(in.size()), out(kBlocks);
  DeviceArray<unsigned> counts(kBlocks);
  TRY(values.error());
  TRY(out.error());
  TRY(counts.error());
  TRY(cudaMemcpy(values.get(), in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));
  block_sums<<<kBlocks, kThreads, kThreads * sizeof(float)>>>(values.get(), out.get(), counts.get());
  TRY(cudaGetLastError());
  TRY(cudaMemcpy(sums.data(), out.get(), kBlocks * sizeof(float), cudaMemcpyDeviceToHost));
  TRY(cudaMemcpy(negatives.data(), counts.get(), kBlocks * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (unsigned b = 0; b < kBlocks; ++b) {
    expected.assign(in.begin() + b * kThreads, in.begin() + (b + 1) * kThreads);
    unsigned negative = 0;
    for (float value : expected) negative += value < 0;
    for (unsigned half = kThreads / 2; half > 0; half /= 2)
      for (unsigned i = 0; i < half; ++i) expected[i] += expected[i + half];
    EXPECT(sums[b] == expected[0]);  // to the last bit: the order of the additions is the same
    EXPECT(negatives[b] == negative);
  }
  return {};
}

Verdict managed_memory() {
  int* values = nullptr;
  TRY(cudaMallocManaged(&values, 64 * sizeof(int)));
  cudaPointerAttributes attributes{};
  TRY(cudaPointerGetAttributes(&attributes, values));
  EXPECT(attributes.type == cudaMemoryTypeManaged);
  for (int i = 0; i < 64; ++i) values[i] = i;
  add_to_each<<<1, 64>>>(values, 100, 64);
  TRY(cudaGetLastError());
  TRY(cudaDeviceSynchronize());
  EXPECT(values[0] == 100 && values[63] == 163);
  TRY(cudaFree(values));
  return {};
}

Verdict kernel_attributes() {
  cudaFuncAttributes attributes{};
  TRY(cudaFuncGetAttributes(&attributes, fill<int>));
  EXPECT(attributes.maxThreadsPerBlock > 0 && attributes.numRegs > 0);
  int blocks = 0;
  TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill<int>, 128, 0));
  EXPECT(blocks > 0);
  return {};
}

Verdict unknown_kernel() {
  static const int not_a_kernel = 0;
  EXPECT(cudaLaunchKernel(&not_a_kernel, dim3(1), dim3(1), nullptr, 0, nullptr) == cudaErrorInvalidDeviceFunction);
  EXPECT(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
  return {};
}

Verdict kernel_handle() {
  cudaKernel_t kernel = nullptr;
  const char* name = nullptr;
  TRY(cudaGetKernel(&kernel, reinterpret_cast<const void*>(add_to_each)));
  EXPECT(kernel != nullptr);
  TRY(cudaFuncGetName(&name, reinterpret_cast<const void*>(add_to_each)));
  EXPECT(std::string(name) == "_Z11add_to_eachPiii");
  std::size_t offset = 0, size = 0;
  TRY(cudaFuncGetParamInfo(reinterpret_cast<const void*>(add_to_each), 1, &offset, &size));
  EXPECT(offset == 8 && size == 4);
  return {};
}

Verdict driver_entry_point() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult status{};
  TRY(cudaGetDriverEntryPointByVersion("cuMemGetInfo", &entry, 3020, cudaEnableDefault, &status));
  EXPECT(entry != nullptr && status == cudaDriverEntryPointSuccess);
  std::size_t free = 0, total = 0;
  EXPECT(reinterpret_cast<int (*)(std::size_t*, std::size_t*)>(entry)(&free, &total) == 0);
  EXPECT(total > 0 && free <= total);
  TRY(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &entry, 13000, cudaEnableDefault, &status));
  EXPECT(entry == nullptr && status == cudaDriverEntryPointSymbolNotFound);
  return {};
}

Verdict peer_copy() {
  DeviceArray<int> from(100), to(100);
  TRY(from.error());
  TRY(to.error());
  TRY(cudaMemset(from.get(), 1, 100 * sizeof(int)));
  TRY(cudaMemcpyPeer(to.get(), 0, from.get(), 0, 100 * sizeof(int)));
  int out[100] = {};
  TRY(cudaMemcpy(out, to.get(), sizeof(out), cudaMemcpyDeviceToHost));
  EXPECT(out[99] == 0x01010101);
  return {};
}

}  // namespace

std::vector<Check> kernel_checks() {
  return {{"kernel: template with a struct of 48 bytes", struct_parameter},
          {"kernel: three-dimensional grid and block", geometry},
          {"kernel: parameters are copied at the launch", parameters_are_copied_at_the_launch},
          {"kernel: launch with a configuration", launch_with_a_configuration},
          {"kernel: cooperative launch", cooperative_launch},
          {"kernel: atomics of two streams", atomics_across_streams},
          {"kernel: shared memory, barriers, shared atomics", shared_memory_and_barriers},
          {"kernel: attributes and occupancy", kernel_attributes},
          {"kernel: handle, name, parameters", kernel_handle},
          {"kernel: an unknown one is refused", unknown_kernel},
          {"managed memory: host and kernel", managed_memory},
          {"copy: peer form on one device", peer_copy},
          {"driver entry point through the runtime", driver_entry_point}};
}
