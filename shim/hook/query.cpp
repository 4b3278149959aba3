#include "shim/hook/query.hpp"

#include "shim/hook/abis.hpp"
#include "shim/hook/doors.hpp"
#include "shim/hook/driver_library.hpp"
#include "shim/hook/statistics.hpp"

namespace vramd::shim::hook::query {
namespace {

// Which ABI the driver chose. Up to our headers' version the request tells. Above it the driver may know an
// ABI that we don't: then only a pointer that is one of the driver's exports tells, and anything else stays
// the driver's.
std::optional<Entry> chosen_abi(const char* symbol, int version, cuuint64_t flags, const void* answer) {
  if (version <= CUDA_VERSION) return select_abi(symbol, version, flags);
  std::optional<Entry> chosen;
  any_abi(symbol, [&](Entry entry) {
    if (!is_export(entry, answer)) return false;
    chosen = entry;
    return true;
  });
  if (!chosen && next_abi(symbol, nullptr) != nullptr) count(Counter::queries_of_unknown_abi);
  return chosen;
}

void replace(const char* symbol, int version, cuuint64_t flags, void** function) {
  count(Counter::queries);
  if (symbol == nullptr || function == nullptr || *function == nullptr) return;
  const std::optional<Entry> entry = chosen_abi(symbol, version, flags, *function);
  if (!entry || !is_hooked(*entry)) return;
  // A driver that is not bound to itself (-Bsymbolic) gives out what is first in the process under that name: ours.
  if (*function != handed_out(*entry)) remember(*entry, *function);
  *function = handed_out(*entry);
  count(Counter::query_replacements);
  count_handed_out(*entry);
}

}  // namespace

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  const CUresult result = real<Entry::cuGetProcAddress>()(symbol, function, version, flags);
  if (result == CUDA_SUCCESS) {
    replace(symbol, version, flags, function);
  } else {
    count(Counter::queries);
  }
  return result;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  const CUresult result = real<Entry::cuGetProcAddress_v2>()(symbol, function, version, flags, status);
  if (result == CUDA_SUCCESS) {
    replace(symbol, version, flags, function);
  } else {
    count(Counter::queries);
  }
  return result;
}

}  // namespace vramd::shim::hook::query
