#include <nlohmann/json.hpp>

#include "tools/vramctl/checks.hpp"
#include "tools/vramctl/format.hpp"
#include "tools/vramctl/probe.hpp"

namespace vramd::ctl {
namespace {

using Json = nlohmann::json;

constexpr const char* kDriver = "driver library";
constexpr const char* kLibrary = "libcuda.so.1";

// cuDriverGetVersion counts 12040 for 12.4.
std::string version_text(int version) { return std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10); }

CheckResult device_result(const Json& device) {
  const std::string name = "GPU " + std::to_string(device.value("index", 0));
  const std::string text = device.value("name", "unnamed") + ", " + size_text(device.value("total", std::uint64_t{0})) + ", " +
                           device.value("uuid", "no uuid");
  if (!device.value("vmm", false)) {
    return finding(name, text + ": no virtual memory management",
                   "vramd serves it from the driver's own allocations (source native), without sharing");
  }
  if (!device.value("posix_fd", false)) {
    return finding(name, text + ": its memory cannot be handed over as a file descriptor",
                   "sessions use memory of their own (source local); sharing needs a driver that can");
  }
  if (device.value("exclusive", false)) {
    return finding(name, text + ": compute mode EXCLUSIVE_PROCESS keeps the daemon out",
                   "nvidia-smi -c DEFAULT lets daemon and programs share it");
  }
  return ok(name, text + ", virtual memory management, shareable");
}

}  // namespace

void check_driver(const std::vector<std::pair<std::string, std::string>>& variables, Results& results) {
  const ProbeReport report = probe_in_child("driver", kLibrary, variables);
  const Json facts = Json::parse(report.output, nullptr, false);
  if (!report.finished || !facts.is_object()) {
    results.push_back(
        finding(kDriver, std::string(kLibrary) + ": " + report.trouble, "reinstall the GPU's driver; check with nvidia-smi"));
    return;
  }
  if (facts.contains("load_error")) {
    results.push_back(
        finding(kDriver, facts.value("load_error", ""),
                "install the GPU's driver, or set LD_LIBRARY_PATH to the folder of libcuda.so.1; without a GPU try a "
                "simulated one: vramd --sim rtx-a5000-24g"));
    return;
  }
  const std::string path = facts.value("path", kLibrary);
  if (facts.contains("error")) {
    results.push_back(
        finding(kDriver, path + ": " + facts.value("error", ""), "this is no CUDA driver; check LD_LIBRARY_PATH"));
    return;
  }
  if (facts.contains("init_error")) {
    results.push_back(finding(kDriver, path + ": cuInit gives error " + std::to_string(facts.value("init_error", 0)),
                              "check that the kernel module is loaded and /dev/nvidia* can be opened"));
    return;
  }
  results.push_back(ok(kDriver, path + ", CUDA " + version_text(facts.value("version", 0))));
  const Json devices = facts.value("devices", Json::array());
  if (devices.empty()) results.push_back(finding("GPUs", "the driver sees none", "check nvidia-smi and CUDA_VISIBLE_DEVICES"));
  for (const Json& device : devices) results.push_back(device_result(device));
}

}  // namespace vramd::ctl
