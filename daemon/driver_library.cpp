#include "daemon/driver_library.hpp"

#include <dlfcn.h>
#include <string.h>

#include "daemon/text.hpp"

namespace vramd {
namespace {

std::string uuid_text(const protocol::Uuid& uuid) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += kDigits[uuid.bytes[i] >> 4];
    out += kDigits[uuid.bytes[i] & 15];
  }
  return out;
}

Result<DeviceFacts> read_facts(const Driver& calls, int index) {
  DeviceFacts facts;
  facts.index = static_cast<std::uint32_t>(index);
  if (auto ok = check(calls.device_get(&facts.handle, index), "cuDeviceGet"); !ok) return tl::unexpected(ok.error());
  CUuuid uuid{};
  if (auto ok = check(calls.device_get_uuid(&uuid, facts.handle), "cuDeviceGetUuid"); !ok) return tl::unexpected(ok.error());
  ::memcpy(facts.uuid.bytes, uuid.bytes, sizeof facts.uuid.bytes);
  facts.uuid_text = uuid_text(facts.uuid);
  std::size_t total = 0;
  if (auto ok = check(calls.device_total_mem(&total, facts.handle), "cuDeviceTotalMem"); !ok) return tl::unexpected(ok.error());
  facts.total = {total};
  // Names are for people: without them the device still works.
  char buffer[256] = {};
  if (calls.device_get_name(buffer, sizeof buffer - 1, facts.handle) == CUDA_SUCCESS) facts.name = buffer;
  char bus[64] = {};
  if (calls.device_get_pci_bus_id(bus, sizeof bus - 1, facts.handle) == CUDA_SUCCESS) facts.pci_bus_id = bus;
  int value = 0;
  if (calls.device_get_attribute(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, facts.handle) == CUDA_SUCCESS)
    facts.virtual_memory = value != 0;
  if (calls.device_get_attribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, facts.handle) == CUDA_SUCCESS)
    facts.exclusive = value == CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
  return facts;
}

}  // namespace

Try<OpenDriver> open_driver(const std::string& library, const std::string& advice) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return trouble(kExitRuntime, text("cannot open the driver: ", why == nullptr ? "unknown error" : why, "; ", advice));
  }
  OpenDriver opened;
  const auto table = load_driver([](void* context, const char* name) { return ::dlsym(context, name); }, handle);
  if (!table)
    return trouble(kExitRuntime, text(library, " has no ", table.error().what,
                                      ": the driver is too old for vramd "
                                      "(CUDA 11.7 or newer is needed)"));
  opened.calls = *table;
  const CUresult initialised = opened.calls.init(0);
  if (initialised == CUDA_ERROR_NO_DEVICE) return trouble(kExitRuntime, text(library, ": no GPU here; ", advice));
  if (initialised != CUDA_SUCCESS)
    return trouble(kExitRuntime,
                   text(library, ": cuInit failed with CUDA error ", static_cast<int>(initialised), "; ", advice));
  if (const CUresult got = opened.calls.driver_get_version(&opened.version); got != CUDA_SUCCESS)
    return trouble(kExitRuntime, text("cuDriverGetVersion failed with CUDA error ", static_cast<int>(got)));
  int count = 0;
  if (const CUresult got = opened.calls.device_get_count(&count); got != CUDA_SUCCESS || count == 0)
    return trouble(kExitRuntime, text(library, ": no GPU here (CUDA error ", static_cast<int>(got), "); ", advice));
  for (int i = 0; i < count && i < static_cast<int>(protocol::kMaxDevices); ++i) {
    auto facts = read_facts(opened.calls, i);
    if (!facts)
      return trouble(kExitRuntime, text("GPU ", i, ": ", facts.error().what, " failed with CUDA error ", facts.error().detail));
    opened.devices.push_back(std::move(*facts));
  }
  return opened;
}

}  // namespace vramd
