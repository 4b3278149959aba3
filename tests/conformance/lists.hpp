// Every file of cases ends with its list. Constant data: nothing runs before main.
#pragma once

#include "tests/conformance/case.hpp"

namespace vramd::conformance {

extern const CaseList vmm_cases, vmm_mapping_cases, vmm_access_cases, host_vmm_cases, vmm_mapping_cases, memory_cases,
    pointer_cases, ipc_cases, copy_cases, memset_cases, stream_cases, event_cases, capture_cases, graph_cases, node_cases,
    pool_cases, context_cases, fault_cases;

template <std::size_t kCount>
constexpr CaseList list_of(const Case (&cases)[kCount]) {
  return {cases, kCount};
}

}  // namespace vramd::conformance
