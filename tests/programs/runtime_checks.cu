// runtime_checks [part of a name]: runs the checks whose names contain the text, all without one.
// Exit: 0 all right, 1 some check is wrong, 2 CUDA cannot be used at all.
#include "tests/programs/runtime_checks.hpp"

#include <cstdio>
#include <cstring>

#include "tests/programs/cuda_check.hpp"

Verdict describe_failure(cudaError_t error, const char* call) {
  (void)cudaGetLastError();  // so that the next check starts clean
  return std::string(call) + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error);
}

int main(int argc, char** argv) {
  if (argc > 1 && (std::strcmp(argv[1], "-h") == 0 || std::strcmp(argv[1], "--help") == 0)) {
    std::printf("usage: runtime_checks [part of a name]: runs the checks whose name contains it, or all\n");
    return 0;
  }
  int count = 0;
  REQUIRE_CUDA(cudaGetDeviceCount(&count));
  REQUIRE_CUDA(cudaSetDevice(0));

  int run = 0;
  int wrong = 0;
  for (const auto& group : {memory_checks(), order_checks(), kernel_checks()}) {
    for (const Check& check : group) {
      if (argc > 1 && std::strstr(check.name, argv[1]) == nullptr) continue;
      Verdict verdict = check.run();
      if (verdict.empty()) {
        const cudaError_t left = cudaGetLastError();
        if (left != cudaSuccess) verdict = describe_failure(left, "left behind");
      }
      std::printf("%-58s %s\n", check.name, verdict.empty() ? "ok" : ("WRONG: " + verdict).c_str());
      std::fflush(stdout);
      ++run;
      if (!verdict.empty()) ++wrong;
    }
  }
  if (run == 0) {
    std::fprintf(stderr, "runtime_checks: no check is named '%s'\n", argv[1]);
    return kExitUsage;
  }
  std::printf("%d checks, %d wrong\n", run, wrong);
  return wrong == 0 ? 0 : kExitWrongResult;
}
