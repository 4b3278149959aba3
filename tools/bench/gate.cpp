// gate: what the hook and the open gate add to a launch, on a driver that does nothing.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "tools/bench/bench.hpp"

namespace vramd::bench {
namespace {

constexpr double kTarget = 10;  // ns
constexpr int kBatch = 1000;
using Launch = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**,
                            void**);

void launch(Launch function) { (void)function(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr); }

template <class Function>
Function look_up(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

// One line of text per pair of batches: nanoseconds per launch, direct and hooked.
std::string output_of_child(const Options& options, const std::string& count) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::setenv("LD_PRELOAD", options.shim.c_str(), 1);
    ::setenv("LD_LIBRARY_PATH", (options.folder + "/bench").c_str(), 1);
    ::setenv("VRAMD_SOCKET", "/nonexistent", 1);
    ::setenv("VRAMD_LOG", "error", 1);
    ::execl("/proc/self/exe", "vramd-bench", kGateChild, count.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) throw std::runtime_error("the measuring process failed: " + text);
  return text;
}

}  // namespace

int run_gate_child(int pairs) {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return std::puts(::dlerror()), 3;
  const auto hooked = look_up<Launch>(driver, "cuLaunchKernel");
  const auto direct = look_up<Launch (*)()>(driver, "null_driver_launch")();
  if (hooked == direct) return std::puts("the launch is not hooked"), 4;
  if (look_up<CUresult (*)(unsigned)>(driver, "cuInit")(0) != CUDA_SUCCESS) return std::puts("cuInit failed"), 5;
  for (int i = 0; i < pairs; ++i) {
    const double first = time_of_one(kBatch, [&] { launch(direct); });
    const double second = time_of_one(kBatch, [&] { launch(hooked); });
    std::printf("%.3f %.3f\n", first, second);
  }
  return 0;
}

Result run_gate(const Options& options) {
  Result result{"gate", "host, with a driver that does nothing", "", {}};
  const std::string text = output_of_child(options, options.long_run ? "5000" : "500");
  Samples direct, added;
  const char* at = text.c_str();
  for (double first = 0, second = 0; std::sscanf(at, "%lf %lf", &first, &second) == 2;) {
    direct.add(first);
    added.add(second - first);
    while (*at != '\0' && *at++ != '\n') {
    }
  }
  if (direct.size() == 0) throw std::runtime_error("nothing was measured");
  Row row;
  row.name = "added to a launch by hook and open gate";
  row.unit = "ns";
  row.samples = added;
  row.peer = Peer{"direct", direct.percentile(50)};
  row.at_most = kTarget;
  result.rows.push_back(row);
  // What a hook that makes a system call adds at least.
  Samples slow;
  for (int i = 0; i < 100; ++i) slow.add(time_of_one(kBatch, [] { (void)::syscall(SYS_gettid); }));
  Row control;
  control.name = "a system call";
  control.unit = "ns";
  control.samples = slow;
  control.at_most = kTarget;
  control.is_control = true;
  result.rows.push_back(control);
  return result;
}

}  // namespace vramd::bench
