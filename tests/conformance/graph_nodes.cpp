// Graphs made node by node, and changes to their execs.
#include "tests/conformance/gate.hpp"
#include "tests/conformance/graph_support.hpp"
#include "tests/conformance/lists.hpp"

namespace vramd::conformance {
namespace {
using enum Source;

CUgraph empty_graph() {
  CUgraph graph = nullptr;
  NEED(cuGraphCreate(&graph, 0));
  return graph;
}

CUcontext current() {
  CUcontext context = nullptr;
  NEED(cuCtxGetCurrent(&context));
  return context;
}

CUDA_MEMCPY3D copy_of(CUdeviceptr destination, CUdeviceptr source, std::size_t size = kBytes) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = source;
  copy.dstDevice = destination;
  copy.WidthInBytes = size;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUDA_MEMSET_NODE_PARAMS set_of(CUdeviceptr destination, unsigned value, unsigned element = 1, std::size_t width = kBytes) {
  CUDA_MEMSET_NODE_PARAMS set{};
  set.dst = destination;
  set.value = value;
  set.elementSize = element;
  set.width = width;
  set.height = 1;
  return set;
}

CUgraphNode memset_node(CUgraph graph, const CUDA_MEMSET_NODE_PARAMS& set, CUgraphNode after = nullptr) {
  CUgraphNode node = nullptr;
  NEED(cuGraphAddMemsetNode(&node, graph, &after, after ? 1 : 0, &set, current()));
  return node;
}

CUgraphNode copy_node(CUgraph graph, const CUDA_MEMCPY3D& copy, CUgraphNode after = nullptr) {
  CUgraphNode node = nullptr;
  NEED(cuGraphAddMemcpyNode(&node, graph, &after, after ? 1 : 0, &copy, current()));
  return node;
}

void launch(CUgraphExec exec) {
  const CUstream s = stream();
  NEED(cuGraphLaunch(exec, s));
  NEED(cuStreamSynchronize(s));
}

CUdeviceptr block_with(unsigned char value) {
  const CUdeviceptr block = device_memory(kBytes);
  fill(block, value, kBytes);
  return block;
}

constexpr Case cases[] = {
    {"nodes.memset", "a memset node sets its range", documented,
     [](int) {
       primary();
       const CUdeviceptr block = block_with(0);
       const CUgraph graph = empty_graph();
       memset_node(graph, set_of(block, 0x0a0a0a0a, 4, 100));
       launch(instantiated(graph));
       expect_that(holds(block, 10, 400) && holds(block + 400, 0, kBytes - 400), "bytes");
     }},
    {"nodes.copy", "a memcpy node copies", documented,
     [](int) {
       primary();
       const CUdeviceptr source = block_with(0x1d), block = block_with(0);
       const CUgraph graph = empty_graph();
       copy_node(graph, copy_of(block, source));
       launch(instantiated(graph));
       expect_that(holds(block, 0x1d, kBytes), "bytes");
     }},
    {"nodes.host", "a host node calls its function once per launch", documented,
     [](int) {
       primary();
       static std::atomic<int> count{0};
       const CUDA_HOST_NODE_PARAMS host{[](void* c) { static_cast<std::atomic<int>*>(c)->fetch_add(1); }, &count};
       CUgraphNode node = nullptr;
       const CUgraph graph = empty_graph();
       EXPECT(CUDA_SUCCESS, cuGraphAddHostNode(&node, graph, nullptr, 0, &host));
       const CUgraphExec exec = instantiated(graph);
       launch(exec);
       launch(exec);
       expect_that(count.load() == 2, "twice");
     }},
    {"nodes.dependencies", "nodes run behind what they depend on, through an empty node", documented,
     [](int) {
       primary();
       const CUdeviceptr source = block_with(0), middle = block_with(0), block = block_with(0);
       const CUgraph graph = empty_graph();
       const CUgraphNode first = memset_node(graph, set_of(source, 5));
       CUgraphNode nothing = nullptr;
       EXPECT(CUDA_SUCCESS, cuGraphAddEmptyNode(&nothing, graph, &first, 1));
       const CUgraphNode second = copy_node(graph, copy_of(middle, source), nothing);
       copy_node(graph, copy_of(block, middle), second);
       launch(instantiated(graph));
       expect_that(holds(block, 5, kBytes), "bytes went through");
     }},
    {"nodes.order_is_by_edges", "a node added earlier runs later if it depends on one added later", documented,
     [](int) {
       primary();
       const CUdeviceptr source = block_with(0), block = block_with(0);
       const CUgraph graph = empty_graph();
       const CUgraphNode copy = copy_node(graph, copy_of(block, source));
       const CUgraphNode set = memset_node(graph, set_of(source, 9));
#if CUDA_VERSION >= 13000
       EXPECT(CUDA_SUCCESS, cuGraphAddDependencies(graph, &set, &copy, nullptr, 1));
#else
       EXPECT(CUDA_SUCCESS, cuGraphAddDependencies(graph, &set, &copy, 1));
#endif
       launch(instantiated(graph));
       expect_that(holds(block, 9, kBytes), "memset first");
     }},
    {"nodes.get_params", "a memset node's parameters can be asked", documented,
     [](int) {
       primary();
       const CUdeviceptr block = block_with(0);
       const CUgraphNode node = memset_node(empty_graph(), set_of(block, 3, 2, 50));
       CUDA_MEMSET_NODE_PARAMS set{};
       EXPECT(CUDA_SUCCESS, cuGraphMemsetNodeGetParams(node, &set));
       expect_that(set.dst == block && set.value == 3 && set.elementSize == 2 && set.width == 50, "as given");
     }},
    {"nodes.exec_is_a_snapshot", "changing a node of the graph does not change an exec", documented,
     [](int) {
       primary();
       const CUdeviceptr block = block_with(0);
       const CUgraph graph = empty_graph();
       const CUgraphNode node = memset_node(graph, set_of(block, 1));
       const CUgraphExec exec = instantiated(graph);
       const CUDA_MEMSET_NODE_PARAMS other = set_of(block, 2);
       EXPECT(CUDA_SUCCESS, cuGraphMemsetNodeSetParams(node, &other));
       launch(exec);
       expect_that(holds(block, 1, kBytes), "the old value");
       launch(instantiated(graph));
       expect_that(holds(block, 2, kBytes), "a new exec has the new one");
     }},
    {"nodes.exec_memset_set_params", "cuGraphExecMemsetNodeSetParams changes later launches", documented,
     [](int) {
       primary();
       const CUdeviceptr block = block_with(0);
       const CUgraph graph = empty_graph();
       const CUgraphNode node = memset_node(graph, set_of(block, 1));
       const CUgraphExec exec = instantiated(graph);
       const CUDA_MEMSET_NODE_PARAMS other = set_of(block, 2);
       EXPECT(CUDA_SUCCESS, cuGraphExecMemsetNodeSetParams(exec, node, &other, current()));
       launch(exec);
       expect_that(holds(block, 2, kBytes), "the new value");
     }},
    {"nodes.exec_copy_set_params", "cuGraphExecMemcpyNodeSetParams changes later launches", documented,
     [](int) {
       primary();
       const CUdeviceptr one = block_with(1), two = block_with(2), block = block_with(0);
       const CUgraph graph = empty_graph();
       const CUgraphNode node = copy_node(graph, copy_of(block, one));
       const CUgraphExec exec = instantiated(graph);
       const CUDA_MEMCPY3D other = copy_of(block, two);
       EXPECT(CUDA_SUCCESS, cuGraphExecMemcpyNodeSetParams(exec, node, &other, current()));
       launch(exec);
       expect_that(holds(block, 2, kBytes), "the new source");
     }},
    {"nodes.exec_copy_mapping_changed", "the same after an operand's mapping went to host memory: INVALID_VALUE", documented,
     [](int) {
       primary();
       const Mapping m = map_new();
       const CUmemGenericAllocationHandle host = host_chunk(m.size);
       const CUdeviceptr block = block_with(0);
       const CUgraph graph = empty_graph();
       const CUDA_MEMCPY3D copy = copy_of(block, m.address);
       const CUgraphNode node = copy_node(graph, copy);
       const CUgraphExec exec = instantiated(graph);
       NEED(cuMemUnmap(m.address, m.size));
       map_host(m.address, m.size, host);
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(exec, node, &copy, current()));
     }},
    {"nodes.exec_copy_multidimensional", "cuGraphExecMemcpyNodeSetParams with rows: INVALID_VALUE", documented,
     [](int) {
       primary();
       const CUdeviceptr source = block_with(1), block = block_with(0);
       const CUgraph graph = empty_graph();
       const CUgraphNode node = copy_node(graph, copy_of(block, source));
       const CUgraphExec exec = instantiated(graph);
       CUDA_MEMCPY3D rows = copy_of(block, source, 64);
       rows.srcPitch = rows.dstPitch = 128;
       rows.Height = 4;
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(exec, node, &rows, current()));
     }},
    {"nodes.exec_update", "cuGraphExecUpdate takes the values of a graph of the same form", documented,
     [](int) {
       primary();
       const CUdeviceptr block = block_with(0);
       const CUgraph one = empty_graph(), two = empty_graph();
       memset_node(one, set_of(block, 1));
       memset_node(two, set_of(block, 2));
       const CUgraphExec exec = instantiated(one);
       CUgraphExecUpdateResultInfo info{};
       EXPECT(CUDA_SUCCESS, cuGraphExecUpdate(exec, two, &info));
       expect_that(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS, "update succeeded");
       launch(exec);
       expect_that(holds(block, 2, kBytes), "the new value");
     }},
    {"nodes.exec_update_other_form", "an update by a graph with more nodes: GRAPH_EXEC_UPDATE_FAILURE", documented,
     [](int) {
       primary();
       const CUdeviceptr block = block_with(0);
       const CUgraph one = empty_graph(), two = empty_graph();
       memset_node(one, set_of(block, 1));
       const CUgraphNode first = memset_node(two, set_of(block, 2));
       memset_node(two, set_of(block, 3), first);
       const CUgraphExec exec = instantiated(one);
       CUgraphExecUpdateResultInfo info{};
       EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, two, &info));
       expect_that(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, "says that the form changed");
       launch(exec);
       expect_that(holds(block, 1, kBytes), "the exec is as before");
     }},
    {"nodes.disabled", "a disabled memset node does nothing until it is enabled again", documented,
     [](int) {
       primary();
       const CUdeviceptr block = block_with(0);
       const CUgraph graph = empty_graph();
       const CUgraphNode node = memset_node(graph, set_of(block, 4));
       const CUgraphExec exec = instantiated(graph);
       unsigned enabled = 9;
       EXPECT(CUDA_SUCCESS, cuGraphNodeGetEnabled(exec, node, &enabled));
       expect_that(enabled == 1, "enabled at first");
       EXPECT(CUDA_SUCCESS, cuGraphNodeSetEnabled(exec, node, 0));
       launch(exec);
       expect_that(holds(block, 0, kBytes), "does nothing");
       EXPECT(CUDA_SUCCESS, cuGraphNodeSetEnabled(exec, node, 1));
       launch(exec);
       expect_that(holds(block, 4, kBytes), "sets again");
     }},
    {"nodes.disabled_host", "a host node cannot be disabled: INVALID_VALUE", documented,
     [](int) {
       primary();
       const CUDA_HOST_NODE_PARAMS host{[](void*) {}, nullptr};
       CUgraphNode node = nullptr;
       const CUgraph graph = empty_graph();
       NEED(cuGraphAddHostNode(&node, graph, nullptr, 0, &host));
       EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(instantiated(graph), node, 0));
     }},
    {"nodes.child_graph", "a child graph node runs the child's nodes", documented,
     [](int) {
       primary();
       const CUdeviceptr block = block_with(0);
       const CUgraph child = empty_graph(), graph = empty_graph();
       memset_node(child, set_of(block, 8));
       CUgraphNode node = nullptr;
       EXPECT(CUDA_SUCCESS, cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
       launch(instantiated(graph));
       expect_that(holds(block, 8, kBytes), "bytes");
     }},
};

}  // namespace
constinit const CaseList node_cases = list_of(cases);
}  // namespace vramd::conformance
