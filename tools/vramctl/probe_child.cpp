// What the child of doctor does. It may crash: its parent says so.
#include <cuda.h>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/vramctl/calibrate.hpp"
#include "tools/vramctl/probe.hpp"

namespace vramd::ctl {
namespace {

using Json = nlohmann::json;

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += two;
  }
  return text;
}

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

Json device_facts(void* library, int index) {
  const auto get = find<decltype(cuDeviceGet)>(library, "cuDeviceGet");
  const auto attribute = find<decltype(cuDeviceGetAttribute)>(library, "cuDeviceGetAttribute");
  const auto name = find<decltype(cuDeviceGetName)>(library, "cuDeviceGetName");
  const auto uuid = find<decltype(cuDeviceGetUuid)>(library, "cuDeviceGetUuid_v2");
  const auto total = find<decltype(cuDeviceTotalMem)>(library, "cuDeviceTotalMem_v2");
  Json facts{{"index", index}};
  CUdevice device;
  if (get == nullptr || get(&device, index) != CUDA_SUCCESS) return facts;
  char name_text[256] = {};
  if (name != nullptr && name(name_text, sizeof name_text - 1, device) == CUDA_SUCCESS) facts["name"] = name_text;
  CUuuid id;
  if (uuid != nullptr && uuid(&id, device) == CUDA_SUCCESS) facts["uuid"] = uuid_text(id);
  std::size_t bytes = 0;
  if (total != nullptr && total(&bytes, device) == CUDA_SUCCESS) facts["total"] = bytes;
  const auto number = [&](CUdevice_attribute which) {
    int value = 0;
    return attribute != nullptr && attribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
  };
  facts["vmm"] = number(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0;
  facts["posix_fd"] = number(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
  facts["exclusive"] = number(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
  return facts;
}

Json driver_facts(void* library) {
  const auto init = find<decltype(cuInit)>(library, "cuInit");
  const auto version = find<decltype(cuDriverGetVersion)>(library, "cuDriverGetVersion");
  const auto count = find<decltype(cuDeviceGetCount)>(library, "cuDeviceGetCount");
  if (init == nullptr || version == nullptr || count == nullptr) return {{"error", "it lacks cuInit and its kind"}};
  Json facts;
  int number = 0;
  if (version(&number) == CUDA_SUCCESS) facts["version"] = number;
  if (const CUresult result = init(0); result != CUDA_SUCCESS) {
    facts["init_error"] = static_cast<int>(result);
    return facts;
  }
  int devices = 0;
  facts["devices"] = Json::array();
  if (count(&devices) != CUDA_SUCCESS) devices = 0;
  for (int i = 0; i < devices; ++i) facts["devices"].push_back(device_facts(library, i));
  return facts;
}

}  // namespace

int probe(const ProbeOptions& options) {
  if (options.what == "submissions") return probe_submissions(options.library);
  Json facts;
  void* library = ::dlopen(options.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    facts["load_error"] = ::dlerror();
  } else {
    if (options.what == "driver") facts = driver_facts(library);
    link_map* map = nullptr;
    if (::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) facts["path"] = map->l_name;
  }
  std::printf("%s\n", facts.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
  // Not through exit(): the destructors of a foreign library are none of our business.
  ::_exit(0);
}

}  // namespace vramd::ctl
