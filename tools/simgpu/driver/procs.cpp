// cuGetProcAddress: the entry points by name, version and stream flavour.
#include <cuda.h>

#include <string_view>
#include <unordered_map>

#include "impl.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {
namespace {

struct Proc {
  const char* name;
  int version;
  unsigned flags;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM for _ptsz and _ptds forms
  void* address;   // of this library, whatever is preloaded: it is linked with -Bsymbolic
  const char* exported;
};

const Proc kProcs[] = {
#define ROW(name, version, flags, function) {name, version, flags, reinterpret_cast<void*>(&::function), #function},
#include "procs.inc"
#undef ROW
};

const std::unordered_multimap<std::string_view, const Proc*>& procs_by_name() {
  static const auto* const instance = [] {
    auto* map = new std::unordered_multimap<std::string_view, const Proc*>;
    for (const Proc& proc : kProcs) map->emplace(proc.name, &proc);
    return map;
  }();
  return *instance;
}

// The youngest form that is old enough; the per-thread form first where it was asked for.
const Proc* choose(std::string_view name, int version, cuuint64_t flags, bool& known) {
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const Proc* best = nullptr;
  const auto [begin, end] = procs_by_name().equal_range(name);
  known = begin != end;
  for (auto it = begin; it != end; ++it) {
    const Proc& proc = *it->second;
    if (proc.version > version || (proc.flags != 0 && !per_thread)) continue;
    const bool better = !best || proc.flags > best->flags || (proc.flags == best->flags && proc.version > best->version);
    if (better) best = &proc;
  }
  return best;
}

}  // namespace

namespace impl {

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  if (!symbol || !function) return CUDA_ERROR_INVALID_VALUE;
  bool known = false;
  const Proc* const proc = choose(symbol, version, flags, known);
  *function = proc ? proc->address : nullptr;
  if (settings().trace) {
    log_line("simgpu: lookup: %s %d %llu -> %s", symbol, version, static_cast<unsigned long long>(flags),
             proc ? proc->exported : "nothing");
  }
  if (status) {
    *status = proc    ? CU_GET_PROC_ADDRESS_SUCCESS
              : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return proc ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return impl::cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

}  // namespace impl
}  // namespace simgpu
