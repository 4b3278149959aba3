// Commits one crime against a GPU, named by the argument, and prints what the next synchronisation answers: "answer N". On a GPU the
// answers are the same; the simulated one moreover reports what it saw.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/programs/crimes_kernels.cuh"
#include "tests/programs/cuda_check.hpp"

namespace {

constexpr std::size_t kChunk = std::size_t{2} << 20;

template <class Function>
Function driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = library ? dlsym(library, name) : nullptr;
  if (!found) {
    std::fprintf(stderr, "libcuda.so.1 has no %s\n", name);
    std::exit(kExitCudaError);
  }
  return reinterpret_cast<Function>(found);
}
#define DRIVER(name) driver<decltype(&name)>(#name)

void require_driver(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s -> %d\n", call, static_cast<int>(result));
  std::exit(kExitCudaError);
}
#define REQUIRE_DRIVER(call) require_driver(call, #call)

// A mapped chunk of device 0 with the given rights; without SetAccess when they are NONE.
unsigned* mapped(CUmemAccess_flags rights) {
  REQUIRE_CUDA(cudaFree(nullptr));
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle{};
  CUdeviceptr address{};
  REQUIRE_DRIVER(DRIVER(cuMemCreate)(&handle, kChunk, &prop, 0));
  REQUIRE_DRIVER(DRIVER(cuMemAddressReserve)(&address, kChunk, 0, 0, 0));
  REQUIRE_DRIVER(DRIVER(cuMemMap)(address, kChunk, 0, handle, 0));
  CUmemAccessDesc access{};
  access.location = prop.location;
  access.flags = rights;
  if (rights != CU_MEM_ACCESS_FLAGS_PROT_NONE) REQUIRE_DRIVER(DRIVER(cuMemSetAccess)(address, kChunk, &access, 1));
  return reinterpret_cast<unsigned*>(address);
}

unsigned* allocated(std::size_t size = kChunk) {
  void* memory = nullptr;
  REQUIRE_CUDA(cudaMalloc(&memory, size));
  REQUIRE_CUDA(cudaMemset(memory, 0, size));
  REQUIRE_CUDA(cudaDeviceSynchronize());
  return static_cast<unsigned*>(memory);
}

void clean() {
  unsigned* const a = allocated();
  unsigned* const b = mapped(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  poke<<<1, 1>>>(b, 5);
  peek<<<1, 1>>>(b, a);
  unsigned seen = 0;
  REQUIRE_CUDA(cudaMemcpy(&seen, a, sizeof seen, cudaMemcpyDeviceToHost));
  if (seen != 5) std::exit(kExitWrongResult);
  poke_after_barrier<<<2, 48>>>(a);
  REQUIRE_CUDA(cudaMemcpy(&seen, a, sizeof seen, cudaMemcpyDeviceToHost));
  if (seen != 48) std::exit(kExitWrongResult);
}

void peer(bool enabled) {
  unsigned* const memory = allocated();
  REQUIRE_CUDA(cudaSetDevice(1));
  if (enabled) REQUIRE_CUDA(cudaDeviceEnablePeerAccess(0, 0));
  poke<<<1, 1>>>(memory, 1);
}

// A kernel that uses the memory, and what is done to it meanwhile.
template <class Crime>
void under_a_kernel(Crime commit) {
  unsigned* const memory = mapped(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  void* stop = nullptr;
  REQUIRE_CUDA(cudaMallocHost(&stop, sizeof(unsigned)));
  *static_cast<volatile unsigned*>(stop) = 0;
  keep_poking<<<1, 1>>>(memory, static_cast<const unsigned*>(stop));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  commit(reinterpret_cast<CUdeviceptr>(memory));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  *static_cast<volatile unsigned*>(stop) = 1;  // ends a kernel that nobody punished
}

struct Crime {
  const char* name;
  void (*commit)();
};

const Crime kCrimes[] = {
    {"clean", clean},
    {"null", [] { poke<<<1, 1>>>(nullptr, 1); }},
    {"null-after-barrier", [] { poke_after_barrier<<<4, 64>>>(nullptr); }},
    {"freed",
     [] {
       unsigned* const memory = allocated(2 * kChunk);
       REQUIRE_CUDA(cudaFree(memory));
       poke<<<1, 1>>>(memory, 1);
     }},
    {"beyond", [] { poke<<<1, 1>>>(allocated() + 64 * kChunk, 1); }},
    {"no-access", [] { peek<<<1, 1>>>(mapped(CU_MEM_ACCESS_FLAGS_PROT_NONE), allocated()); }},
    {"read-only", [] { poke<<<1, 1>>>(mapped(CU_MEM_ACCESS_FLAGS_PROT_READ), 1); }},
    {"read-then-write", [] { peek_and_poke<<<1, 1>>>(mapped(CU_MEM_ACCESS_FLAGS_PROT_READ), allocated()); }},
    {"peer", [] { peer(false); }},
    {"peer-enabled", [] { peer(true); }},
    {"unmapped-under-kernel",
     [] { under_a_kernel([](CUdeviceptr memory) { REQUIRE_DRIVER(DRIVER(cuMemUnmap)(memory, kChunk)); }); }},
    {"access-withdrawn-under-kernel",
     [] {
       under_a_kernel([](CUdeviceptr memory) {
         CUmemAccessDesc access{};
         access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
         REQUIRE_DRIVER(DRIVER(cuMemSetAccess)(memory, kChunk, &access, 1));
       });
     }},
    {"raise",
     [] {
       allocated();
       raise(SIGSEGV);
     }},
    {"chained-handler",  // installed after the driver's, which it takes for the one before
     [] {
       static struct sigaction before;
       struct sigaction mine {};
       allocated();
       mine.sa_flags = SA_SIGINFO;
       mine.sa_sigaction = [](int signal, siginfo_t* info, void* raw) {
         if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, raw);
         ::signal(signal, SIG_DFL);
       };
       sigaction(SIGSEGV, &mine, &before);
       allocated();
       static volatile std::uintptr_t nowhere = 8;
       *reinterpret_cast<volatile int*>(nowhere) = 1;
     }},
    {"host-read", [] { std::printf("read %u\n", *static_cast<volatile unsigned*>(allocated())); }},
    {"host-write", [] { *static_cast<volatile unsigned*>(allocated()) = 1; }},
    {"double-free",
     [] {
       unsigned* const memory = allocated();
       REQUIRE_CUDA(cudaFree(memory));
       cudaFree(memory);
     }},
    {"leaves-a-kernel-behind",  // what the process is killed in the middle of
     [] {
       unsigned* const memory = allocated();
       void* stop = nullptr;
       REQUIRE_CUDA(cudaMallocHost(&stop, sizeof(unsigned)));
       *static_cast<volatile unsigned*>(stop) = 0;
       keep_poking<<<1, 1>>>(memory, static_cast<const unsigned*>(stop));
       std::puts("running");
       std::fflush(stdout);
     }},
};

}  // namespace

int main(int count, char** arguments) {
  for (const Crime& crime : kCrimes) {
    if (count != 2 || std::strcmp(arguments[1], crime.name) != 0) continue;
    crime.commit();
    std::printf("answer %d\n", static_cast<int>(cudaDeviceSynchronize()));
    return 0;
  }
  std::fprintf(stderr, "usage: crimes NAME, one of:");
  for (const Crime& crime : kCrimes) std::fprintf(stderr, " %s", crime.name);
  std::fprintf(stderr, "\n");
  return kExitUsage;
}
