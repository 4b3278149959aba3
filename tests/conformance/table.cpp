// Which cases there are, in the order in which they are run.
#include "tests/conformance/lists.hpp"

namespace vramd::conformance {

constinit const CaseList* const kLists[] = {
    &vmm_cases,   &vmm_mapping_cases, &vmm_access_cases, &host_vmm_cases, &memory_cases, &pointer_cases,
    &ipc_cases,   &copy_cases,        &memset_cases,     &stream_cases,   &event_cases,  &capture_cases,
    &graph_cases, &node_cases,        &pool_cases,       &context_cases,  &fault_cases,
};
const std::size_t kListCount = sizeof kLists / sizeof *kLists;

}  // namespace vramd::conformance
