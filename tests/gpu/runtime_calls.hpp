// One runtime call per step; each step's driver calls come from the tracer and go into the report.
#pragma once

#include <cuda_runtime.h>

#include "tests/gpu/vramd_trace.h"

extern "C" const unsigned char gpu_run_image[];  // gpu_image.S

class Report {
 public:
  // Needs the tracer in this process; `file` is an open FILE*.
  explicit Report(void* file) : file_(file) {}

  // Runs call() and writes down which driver calls it made. `text` is a name ("cudaMemcpy:HostToDevice") or the source of the
  // call, whose part before the parenthesis is the name.
  template <class Call>
  cudaError_t step(const char* text, Call&& call) {
    before();
    const cudaError_t result = call();
    after(text, result);
    return result;
  }
  void finish();

 private:
  void before();
  void after(const char* text, cudaError_t result);

  void* file_;
  bool first_ = true;
};

#define CALL(report, call) (report).step(#call, [&]() -> cudaError_t { return call; })
#define CASE(report, name, call) (report).step(name, [&]() -> cudaError_t { return call; })

// What the steps share.
struct Scene {
  Report& report;
  int peer;  // another device, or the only one
  cudaStream_t stream = nullptr;
  void* block = nullptr;   // kBlock bytes on the device
  void* second = nullptr;  // the same
  char* pinned = nullptr;  // the same on the host
  char* pageable = nullptr;
};
constexpr size_t kBlock = 1 << 20;

void call_devices(Scene& scene);
void call_memory(Scene& scene);
void call_pools(Scene& scene);
void call_copies(Scene& scene);
void call_streams(Scene& scene);
void call_kernels(Scene& scene);
void call_graphs(Scene& scene);
void call_other_processes(Scene& scene, const char* program);
int serve_other_process();  // the other process
