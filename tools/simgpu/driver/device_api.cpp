// Start-up, devices, errors' names.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>

#include "impl.hpp"
#include "tools/simgpu/driver/attributes.hpp"
#include "tools/simgpu/driver/process.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {
namespace {

struct ResultName {
  int value;
  const char* name;
};
constexpr ResultName kResults[] = {
#include "results.inc"
};

const ResultName* find_result(CUresult result) {
  const auto* const found = std::ranges::find(kResults, static_cast<int>(result), &ResultName::value);
  return found == std::end(kResults) ? nullptr : found;
}

// "CUDA_ERROR_OUT_OF_MEMORY" -> "out of memory"
std::string describe(const char* name) {
  std::string text = name;
  for (const char* prefix : {"CUDA_ERROR_", "CUDA_"}) {
    if (text.starts_with(prefix)) text.erase(0, std::strlen(prefix));
  }
  for (char& c : text) c = c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text == "success" ? "no error" : text;
}

}  // namespace

namespace impl {

CUresult cuInit(unsigned int flags) { return flags != 0 ? CUDA_ERROR_INVALID_VALUE : initialise_process(); }

CUresult cuDriverGetVersion(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = settings().version;
  return CUDA_SUCCESS;
}

// Private tables are not imitated.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  if (table) *table = nullptr;
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  const ResultName* const found = find_result(error);
  *text = found ? found->name : nullptr;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  static const auto* const texts = [] {
    auto* all = new std::string[std::size(kResults)];
    for (std::size_t i = 0; i < std::size(kResults); ++i) all[i] = describe(kResults[i].name);
    return all;
  }();
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  const ResultName* const found = find_result(error);
  *text = found ? texts[found - kResults].c_str() : nullptr;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int* count) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = visible_device_count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  if (!name || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<std::size_t>(length), "%s", control().profile().device_name);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = device_uuid(place_of(device));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetLuid(char*, unsigned int*, CUdevice) { return CUDA_ERROR_NOT_SUPPORTED; }  // Windows only

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = control().capacity(static_cast<int>(place_of(device)));
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *major = control().profile().capability_major;
  *minor = control().profile().capability_minor;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  if (!text || length < 13) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", place_of(device) + 1);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  unsigned domain = 0, bus = 0;
  if (!device || !text) return CUDA_ERROR_INVALID_VALUE;
  const bool with_domain =
      std::sscanf(text, "%x:%x:%*x", &domain, &bus) == 2 && std::strchr(text, ':') != std::strrchr(text, ':');
  if (!with_domain && std::sscanf(text, "%x:", &bus) != 1) return CUDA_ERROR_INVALID_VALUE;
  const int ordinal = domain == 0 && bus >= 1 ? ordinal_of(bus - 1) : -1;
  if (ordinal < 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (!value || attribute <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = device_attribute(attribute, device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  if (!can) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device) || !valid_device(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source, CUdevice destination) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(source) || !valid_device(destination) || source == destination) return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;  // a PCIe path: no atomics, no arrays, rank 0
  return CUDA_SUCCESS;
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget, CUflushGPUDirectRDMAWritesScope) { return CUDA_SUCCESS; }
CUresult cuProfilerStart() { return CUDA_SUCCESS; }
CUresult cuProfilerStop() { return CUDA_SUCCESS; }

}  // namespace impl
}  // namespace simgpu
