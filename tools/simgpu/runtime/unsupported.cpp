// The rest of what a CUDA 13.0 runtime exports: each says once which function was called, and answers
// cudaErrorNotSupported. This file includes no CUDA header: the functions are defined without their
// parameters, which nothing here reads.
#include <atomic>
#include <cstdio>

namespace {

constexpr int kNotSupported = 801;  // cudaErrorNotSupported

int refuse(const char* name, std::atomic<bool>& said) {
  if (!said.exchange(true))
    std::fprintf(stderr, "libcudart stand-in: %s is not implemented; it answers cudaErrorNotSupported\n", name);
  return kNotSupported;
}

}  // namespace

#define SIMGPU_UNSUPPORTED(name)                                 \
  extern "C" __attribute__((visibility("default"))) int name();  \
  extern "C" __attribute__((visibility("default"))) int name() { \
    static std::atomic<bool> said{false};                        \
    return refuse(#name, said);                                  \
  }

#include "unsupported.inc"  // generated
