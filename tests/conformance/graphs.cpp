// Graphs that come from captures.
#include "tests/conformance/gate.hpp"
#include "tests/conformance/graph_support.hpp"
#include "tests/conformance/lists.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

void add_one(void* counter) { static_cast<std::atomic<int>*>(counter)->fetch_add(1); }

constexpr Case cases[] = {
    {"graphs.launch", "a launch does what was captured", documented,
     [](int) {
       primary();
       const CUdeviceptr source = device_memory(kBytes), block = device_memory(kBytes);
       fill(source, 0x12, kBytes);
       fill(block, 0, kBytes);
       const CUstream s = stream();
       const CUgraphExec exec = instantiated(captured(s, [&] { NEED(cuMemcpyDtoDAsync(block, source, kBytes, s)); }));
       expect_that(holds(block, 0, kBytes), "nothing before the launch");
       EXPECT(CUDA_SUCCESS, cuGraphLaunch(exec, s));
       NEED(cuStreamSynchronize(s));
       expect_that(holds(block, 0x12, kBytes), "bytes");
     }},
    {"graphs.relaunch_reads_anew", "each launch reads its operands anew, pinned and pageable", documented,
     [](int) {
       primary();
       char* const pinned = pinned_memory(kBytes);
       char* const pageable = pageable_memory(kBytes);
       const CUdeviceptr one = device_memory(kBytes), two = device_memory(kBytes);
       const CUstream s = stream();
       const CUgraphExec exec = instantiated(captured(s, [&] {
         NEED(cuMemcpyHtoDAsync(one, pinned, kBytes, s));
         NEED(cuMemcpyHtoDAsync(two, pageable, kBytes, s));
       }));
       for (unsigned char value = 3; value < 5; ++value) {
         __builtin_memset(pinned, value, kBytes);
         __builtin_memset(pageable, value, kBytes);
         NEED(cuGraphLaunch(exec, s));
         NEED(cuStreamSynchronize(s));
         expect_that(holds(one, value, kBytes), "from pinned");
         expect_that(holds(two, value, kBytes), "from pageable");
       }
     }},
    {"graphs.order_in_stream", "a launch waits for earlier work of its stream and holds later work", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(kBytes);
       fill(block, 0, kBytes);
       const CUstream s = stream();
       const CUgraphExec exec = instantiated(captured(s, [&] { NEED(cuMemsetD8Async(block, 2, kBytes, s)); }));
       Gate& gate = make_gate();
       close_gate(gate, s);
       NEED(cuMemsetD8Async(block, 1, kBytes, s));
       EXPECT(CUDA_SUCCESS, cuGraphLaunch(exec, s));
       NEED(cuMemsetD8Async(block + kBytes / 2, 3, kBytes / 2, s));
       EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
       expect_that(!gate.is_open(), "the launch did not wait");
       gate.open();
       NEED(cuStreamSynchronize(s));
       expect_that(holds(block, 2, kBytes / 2) && holds(block + kBytes / 2, 3, kBytes / 2), "in order");
     }},
    {"graphs.host_nodes", "a captured host function runs at each launch, behind what precedes it", documented,
     [](int) {
       primary();
       static std::atomic<int> count{0};
       const CUstream s = stream();
       const CUgraphExec exec = instantiated(captured(s, [&] { NEED(cuLaunchHostFunc(s, add_one, &count)); }));
       expect_that(count.load() == 0, "not at the capture");
       for (int i = 0; i < 3; ++i) NEED(cuGraphLaunch(exec, s));
       NEED(cuStreamSynchronize(s));
       observe("%d times", count.load());
       expect_that(count.load() == 3, "three times");
     }},
    {"graphs.launches_do_not_overlap", "two launches of one exec in two streams run one after the other", documented,
     [](int) {
       primary();
       struct State {
         std::atomic<int> inside{0}, most{0};
       };
       static State state;
       const CUstream one = stream(), two = stream();
       const CUgraphExec exec = instantiated(captured(one, [&] {
         NEED(cuLaunchHostFunc(
             one,
             [](void*) {
               const int now = state.inside.fetch_add(1) + 1;
               if (now > state.most.load()) state.most.store(now);
               sleep_millis(30);
               state.inside.fetch_sub(1);
             },
             nullptr));
       }));
       NEED(cuGraphLaunch(exec, one));
       NEED(cuGraphLaunch(exec, two));
       NEED(cuCtxSynchronize());
       expect_that(state.most.load() == 1, "one at a time");
     }},
    {"graphs.destroyed_graph", "an exec outlives its graph", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(kBytes);
       const CUstream s = stream();
       const CUgraph graph = captured(s, [&] { NEED(cuMemsetD8Async(block, 6, kBytes, s)); });
       const CUgraphExec exec = instantiated(graph);
       EXPECT(CUDA_SUCCESS, cuGraphDestroy(graph));
       EXPECT(CUDA_SUCCESS, cuGraphLaunch(exec, s));
       NEED(cuStreamSynchronize(s));
       expect_that(holds(block, 6, kBytes), "bytes");
     }},
    {"graphs.destroy_while_running", "an exec destroyed while its launch is pending: the launch completes", documented,
     [](int) {
       primary();
       const CUdeviceptr block = device_memory(kBytes);
       fill(block, 0, kBytes);
       const CUstream s = stream();
       const CUgraphExec exec = instantiated(captured(s, [&] { NEED(cuMemsetD8Async(block, 6, kBytes, s)); }));
       Gate& gate = make_gate();
       close_gate(gate, s);
       NEED(cuGraphLaunch(exec, s));
       EXPECT(CUDA_SUCCESS, cuGraphExecDestroy(exec));
       gate.open();
       NEED(cuStreamSynchronize(s));
       expect_that(holds(block, 6, kBytes), "bytes");
     }},
    {"graphs.node_types", "a capture of copy, memset and host function has those nodes", documented,
     [](int) {
       primary();
       const CUdeviceptr one = device_memory(kBytes), two = device_memory(kBytes);
       static std::atomic<int> count{0};
       const CUstream s = stream();
       const CUgraph graph = captured(s, [&] {
         NEED(cuMemsetD8Async(one, 1, kBytes, s));
         NEED(cuMemcpyDtoDAsync(two, one, kBytes, s));
         NEED(cuLaunchHostFunc(s, add_one, &count));
       });
       CUgraphNode nodes[8] = {};
       std::size_t found = 8;
       EXPECT(CUDA_SUCCESS, cuGraphGetNodes(graph, nodes, &found));
       observe("%zu nodes", found);
       int memsets = 0, copies = 0, hosts = 0;
       for (std::size_t i = 0; i < found; ++i) {
         CUgraphNodeType type{};
         EXPECT(CUDA_SUCCESS, cuGraphNodeGetType(nodes[i], &type));
         memsets += type == CU_GRAPH_NODE_TYPE_MEMSET;
         copies += type == CU_GRAPH_NODE_TYPE_MEMCPY;
         hosts += type == CU_GRAPH_NODE_TYPE_HOST;
       }
       expect_that(found == 3 && memsets == 1 && copies == 1 && hosts == 1, "one of each");
     }},
    {"graphs.memset_across_remap", "a memset node writes to what is mapped at its address at the launch", assumed,
     [](int) {
       primary();
       const Mapping m = map_new();
       const CUstream s = stream();
       const CUgraphExec exec = instantiated(captured(s, [&] { NEED(cuMemsetD8Async(m.address, 8, kBytes, s)); }));
       NEED(cuMemUnmap(m.address, m.size));
       const CUmemGenericAllocationHandle other = chunk(m.size, device_prop());
       map(m.address, m.size, other);
       fill(m.address, 0, m.size);
       EXPECT(CUDA_SUCCESS, cuGraphLaunch(exec, s));
       EXPECT(CUDA_SUCCESS, cuStreamSynchronize(s));
       expect_that(holds(m.address, 8, kBytes), "the new chunk has it");
     }},
    {"graphs.copy_of_unmapped", "a launch whose operand is no longer mapped: a fault", assumed,
     [](int) {
       primary();
       const Mapping m = map_new();
       const CUdeviceptr block = device_memory(kBytes);
       const CUstream s = stream();
       const CUgraphExec exec = instantiated(captured(s, [&] { NEED(cuMemcpyDtoDAsync(block, m.address, kBytes, s)); }));
       NEED(cuMemUnmap(m.address, m.size));
       const CUresult launched = cuGraphLaunch(exec, s);
       const CUresult done = launched ? launched : cuStreamSynchronize(s);
       expect_result(done, {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_INVALID_VALUE}, "launch and synchronise");
     }},
};

}  // namespace
constinit const CaseList graph_cases = list_of(cases);
}  // namespace vramd::conformance
