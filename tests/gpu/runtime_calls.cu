// runtime_calls FILE: makes one call of the CUDA runtime after the other and writes as JSON which driver calls each one made.
// Run it with libvramd_trace.so preloaded. Results of calls are recorded, never fatal.
// Exit: 0 written, 2 no tracer or no CUDA, 64 usage.
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/gpu/runtime_calls.hpp"

namespace {

constexpr uint64_t kRoom = 4096;
vramd_trace_call g_calls[kRoom];
vramd_trace_query g_queries[2048];
decltype(&vramd_trace_take) g_take;
decltype(&vramd_trace_queries) g_queries_of;

bool same(const vramd_trace_call& a, const vramd_trace_call& b) {
  return std::strcmp(a.entry, b.entry) == 0 && a.result == b.result && a.this_thread == b.this_thread;
}

void write_call(FILE* file, const vramd_trace_call& call, uint64_t times) {
  std::fprintf(file, "{\"entry\": \"%s\", \"asked\": \"%s", call.entry, call.asked);
  if (call.version >= 0) std::fprintf(file, "@%d", call.version);
  std::fprintf(file, "\", \"flags\": %u, \"result\": %d, \"times\": %llu%s}", call.flags, call.result,
               static_cast<unsigned long long>(times), call.this_thread != 0 ? "" : ", \"other_thread\": true");
}

}  // namespace

void Report::before() { g_take(g_calls, 0); }

void Report::after(const char* text, cudaError_t result) {
  auto* file = static_cast<FILE*>(file_);
  const uint64_t made = g_take(g_calls, kRoom);
  const uint64_t count = made < kRoom ? made : kRoom;
  const int length = static_cast<int>(std::strcspn(text, "("));
  std::fprintf(file, "%s\n    \"%.*s\": {\"result\": %d, \"driver\": [", first_ ? "" : ",", length, text,
               static_cast<int>(result));
  first_ = false;
  bool first_call = true;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t times = 1;  // repetitions in a row become one
    while (i + 1 < count && same(g_calls[i], g_calls[i + 1])) ++times, ++i;
    if (!first_call) std::fprintf(file, ", ");
    first_call = false;
    write_call(file, g_calls[i], times);
  }
  std::fprintf(file, "]}");
  std::fflush(file);  // what was seen stays, should a later call not return
  cudaGetLastError();
}

void Report::finish() {
  auto* file = static_cast<FILE*>(file_);
  std::fprintf(file, "\n  },\n  \"lookups\": [");
  const uint64_t count = g_queries_of(g_queries, sizeof(g_queries) / sizeof(g_queries[0]));
  for (uint64_t i = 0; i < count && i < sizeof(g_queries) / sizeof(g_queries[0]); ++i) {
    std::fprintf(file, "%s\n    [\"%s\", %d, %u, %d]", i == 0 ? "" : ",", g_queries[i].name, g_queries[i].version,
                 g_queries[i].flags, g_queries[i].result);
  }
  std::fprintf(file, "\n  ]\n}\n");
}

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--serve") == 0) return serve_other_process();
  if (argc != 2 || argv[1][0] == '-') {
    const bool help = argc == 2 && (std::strcmp(argv[1], "-h") == 0 || std::strcmp(argv[1], "--help") == 0);
    std::fprintf(
        help ? stdout : stderr,
        "usage: LD_PRELOAD=libvramd_trace.so runtime_calls FILE: which driver calls each runtime call makes, as JSON\n");
    return help ? 0 : 64;
  }
  g_take = reinterpret_cast<decltype(g_take)>(dlsym(RTLD_DEFAULT, "vramd_trace_take"));
  g_queries_of = reinterpret_cast<decltype(g_queries_of)>(dlsym(RTLD_DEFAULT, "vramd_trace_queries"));
  if (g_take == nullptr || g_queries_of == nullptr) {
    std::fprintf(stderr, "runtime_calls: the tracer is not in this process; start it with LD_PRELOAD=.../libvramd_trace.so\n");
    return 2;
  }
  FILE* file = std::fopen(argv[1], "w");
  if (file == nullptr) {
    std::fprintf(stderr, "runtime_calls: cannot write %s; name a file in a folder that exists\n", argv[1]);
    return 64;
  }
  int runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  std::fprintf(file, "{\n  \"runtime\": %d,\n  \"calls\": {", runtime);

  Report report(file);
  int devices = 0;
  const cudaError_t usable = CALL(report, cudaGetDeviceCount(&devices));
  if (usable != cudaSuccess || devices == 0) {
    report.finish();
    std::fprintf(stderr, "runtime_calls: no usable GPU: %s\n", cudaGetErrorString(usable));
    return 2;
  }
  Scene scene{report, devices > 1 ? 1 : 0};
  call_devices(scene);
  call_memory(scene);
  call_pools(scene);
  call_copies(scene);
  call_streams(scene);
  call_kernels(scene);
  call_graphs(scene);
  call_other_processes(scene, argv[0]);
  CALL(report, cudaStreamDestroy(scene.stream));
  CALL(report, cudaFreeHost(scene.pinned));
  CALL(report, cudaFree(scene.block));
  CALL(report, cudaProfilerStop());
  CALL(report, cudaDeviceReset());
  report.finish();
  return std::fclose(file) == 0 ? 0 : 2;
}
