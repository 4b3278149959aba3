// The child of calibrate: a program of the CUDA runtime, under the shim. It knows the runtime by its exported names only, so
// that any version will do.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "tools/vramctl/calibrate.hpp"

namespace vramd::ctl {
namespace {

using Json = nlohmann::ordered_json;
using Error = int;  // cudaError_t
using Handle = void*;

constexpr std::size_t kBytes = 4096;
constexpr int kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3;
constexpr int kRelaxed = 2;  // cudaStreamCaptureModeRelaxed
constexpr unsigned kNonBlocking = 1;
// A kernel that does nothing, for any GPU.
constexpr const char* kPtx = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry vramd_nothing()\n{\n  ret;\n}\n";

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// The runtime's functions by name. A call of one that is missing throws.
class Runtime {
 public:
  explicit Runtime(const std::string& path) : library_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) throw std::runtime_error(::dlerror());
  }
  template <class... Arguments>
  Error call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<Error (*)(Arguments...)>(::dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error(std::string("there is no ") + name);
    return function(arguments...);
  }
  template <class... Arguments>
  void need(const char* name, Arguments... arguments) const {
    if (const Error error = call(name, arguments...))
      throw std::runtime_error(std::string(name) + " gives " + std::to_string(error));
  }

 private:
  void* library_;
};

// What the preloaded library exports (shim/hook/vramd_hook.h).
struct GateControl {
  void (*close)() = find<void (*)()>("vramd_gate_close");
  void (*open)() = find<void (*)()>("vramd_gate_open");
  std::uint64_t (*waiting)() = find<std::uint64_t (*)()>("vramd_gate_waiting");
  bool there() const { return close != nullptr && open != nullptr && waiting != nullptr; }

 private:
  template <class Function>
  static Function find(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
  }
};

// Whether the call waits at the closed gate. It has succeeded with an open one before.
bool is_gated(const GateControl& gate, const std::function<Error()>& call) {
  std::atomic<bool> done{false};
  gate.close();
  std::thread caller([&] {
    (void)call();
    done = true;
  });
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (!done && gate.waiting() == 0 && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
  const bool gated = !done && gate.waiting() != 0;
  gate.open();
  caller.join();
  return gated;
}

void nothing(void*) {}
void nothing_in_callback(Handle, Error, void*) {}

class Calls {
 public:
  explicit Calls(const Runtime& runtime) : rt_(runtime) {
    rt_.need("cudaMalloc", &device_, 2 * kBytes);
    rt_.need("cudaMallocHost", &pinned_, kBytes);
    rt_.need("cudaStreamCreateWithFlags", &stream_, kNonBlocking);
  }

  Json measure(const GateControl& gate) {
    Json rows = Json::array();
    const auto row = [&](const char* name, const std::function<Error()>& call) {
      Json one{{"call", name}};
      try {
        if (const Error error = call()) throw std::runtime_error("it gives " + std::to_string(error));
        one["gated"] = is_gated(gate, call);
        (void)rt_.call("cudaDeviceSynchronize");
      } catch (const std::exception& trouble) {
        one["error"] = trouble.what();
      }
      rows.push_back(one);
    };
    void* const d = device_;
    void* const other = static_cast<char*>(device_) + kBytes;
    row("cudaLaunchKernel", [&] { return launch(); });
    row("cudaMemcpy host to device", [&] { return rt_.call("cudaMemcpy", d, pinned_, kBytes, kHostToDevice); });
    row("cudaMemcpy device to host", [&] { return rt_.call("cudaMemcpy", pinned_, d, kBytes, kDeviceToHost); });
    row("cudaMemcpy device to device", [&] { return rt_.call("cudaMemcpy", d, other, kBytes, kDeviceToDevice); });
    row("cudaMemcpy from pageable memory", [&] { return rt_.call("cudaMemcpy", d, pageable_, kBytes, kHostToDevice); });
    row("cudaMemcpyAsync", [&] { return rt_.call("cudaMemcpyAsync", d, pinned_, kBytes, kHostToDevice, stream_); });
    row("cudaMemcpy2D", [&] { return rt_.call("cudaMemcpy2D", d, kPitch, pinned_, kPitch, kPitch, kRows, kHostToDevice); });
    row("cudaMemcpy2DAsync",
        [&] { return rt_.call("cudaMemcpy2DAsync", d, kPitch, pinned_, kPitch, kPitch, kRows, kHostToDevice, stream_); });
    row("cudaMemset", [&] { return rt_.call("cudaMemset", d, 0, kBytes); });
    row("cudaMemsetAsync", [&] { return rt_.call("cudaMemsetAsync", d, 0, kBytes, stream_); });
    row("cudaMemset2D", [&] { return rt_.call("cudaMemset2D", d, kPitch, 0, kPitch, kRows); });
    row("cudaLaunchHostFunc", [&] { return rt_.call("cudaLaunchHostFunc", stream_, &nothing, nullptr); });
    row("cudaStreamAddCallback", [&] { return rt_.call("cudaStreamAddCallback", stream_, &nothing_in_callback, nullptr, 0u); });
    row("cudaStreamBeginCapture", [&] { return capture(); });
    row("cudaGraphLaunch", [&] { return launch_graph(); });
    row("cudaMallocAsync, cudaFreeAsync", [&] { return allocate_in_stream(); });
    return rows;
  }

 private:
  static constexpr std::size_t kPitch = 512, kRows = 4;

  Error launch() {
    if (kernel_ == nullptr) {
      rt_.need("cudaLibraryLoadData", &library_, static_cast<const void*>(kPtx), nullptr, nullptr, 0u, nullptr, nullptr, 0u);
      rt_.need("cudaLibraryGetKernel", &kernel_, library_, "vramd_nothing");
    }
    return rt_.call("cudaLaunchKernel", static_cast<const void*>(kernel_), Dim3{}, Dim3{}, nullptr, std::size_t{0}, stream_);
  }
  Error capture() {
    Handle graph = nullptr;
    if (const Error error = rt_.call("cudaStreamBeginCapture", stream_, kRelaxed)) return error;
    if (const Error error = rt_.call("cudaStreamEndCapture", stream_, &graph)) return error;
    return rt_.call("cudaGraphDestroy", graph);
  }
  Error launch_graph() {
    if (exec_ == nullptr) {
      Handle graph = nullptr;
      rt_.need("cudaStreamBeginCapture", stream_, kRelaxed);
      rt_.need("cudaMemsetAsync", device_, 0, kBytes, stream_);
      rt_.need("cudaStreamEndCapture", stream_, &graph);
      rt_.need("cudaGraphInstantiateWithFlags", &exec_, graph, 0ull);
    }
    return rt_.call("cudaGraphLaunch", exec_, stream_);
  }
  Error allocate_in_stream() {
    void* block = nullptr;
    if (const Error error = rt_.call("cudaMallocAsync", &block, kBytes, stream_)) return error;
    return rt_.call("cudaFreeAsync", block, stream_);
  }

  const Runtime& rt_;
  void* device_ = nullptr;
  void* pinned_ = nullptr;
  char pageable_[kBytes] = {};
  Handle stream_ = nullptr, library_ = nullptr, kernel_ = nullptr, exec_ = nullptr;
};

Json facts_of(const std::string& path) {
  const GateControl gate;
  if (!gate.there()) return {{"error", "libvramd.so is not preloaded, or is of another version"}};
  try {
    const Runtime runtime(path);
    int version = 0, driver = 0;
    runtime.need("cudaRuntimeGetVersion", &version);
    runtime.need("cudaDriverGetVersion", &driver);
    Calls calls(runtime);
    return {{"runtime", path}, {"runtime_version", version}, {"driver_version", driver}, {"calls", calls.measure(gate)}};
  } catch (const std::exception& trouble) {
    return {{"error", trouble.what()}};
  }
}

}  // namespace

int probe_submissions(const std::string& runtime) {
  std::printf("%s\n", facts_of(runtime).dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
  ::_exit(0);
}

}  // namespace vramd::ctl
