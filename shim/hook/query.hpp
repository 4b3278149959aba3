// cuGetProcAddress, in both ABIs: the driver answers, then pointers to hooked functions are replaced by ours.
#pragma once

#include "shim/hook/entries.hpp"

namespace vramd::shim::hook::query {

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags);
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status);

}  // namespace vramd::shim::hook::query
