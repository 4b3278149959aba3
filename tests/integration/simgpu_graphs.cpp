// Graphs that the program builds by hand: nodes, edges, parameters, updates.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "tests/support/simgpu_machine.hpp"

static const OwnMachine machine("tiny-1g", "2");

namespace {

constexpr std::size_t kBytes = 4096;

CUDA_MEMSET_NODE_PARAMS fill_of(CUdeviceptr address, unsigned char value) {
  CUDA_MEMSET_NODE_PARAMS params{};
  params.dst = address;
  params.value = value;
  params.elementSize = 1;
  params.width = kBytes;
  params.height = 1;
  return params;
}

CUDA_MEMCPY3D copy_of(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D params{};
  params.srcMemoryType = params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  params.srcDevice = from;
  params.dstDevice = to;
  params.WidthInBytes = kBytes;
  params.Height = params.Depth = 1;
  return params;
}

// A graph with two blocks of device memory.
struct Stand {
  TestContext context;
  CUdeviceptr a{}, b{};
  CUgraph graph{};
  CUgraphExec exec{};

  Stand() {
    CU_OK(cuMemAlloc(&a, kBytes));
    CU_OK(cuMemAlloc(&b, kBytes));
    CU_OK(cuMemsetD8(a, 0, kBytes));
    CU_OK(cuMemsetD8(b, 0, kBytes));
    CU_OK(cuCtxSynchronize());  // non-blocking streams don't wait for these fills
    CU_OK(cuGraphCreate(&graph, 0));
  }
  CUgraphNode fill(CUdeviceptr address, unsigned char value, std::vector<CUgraphNode> after = {}) {
    CUgraphNode node{};
    const auto params = fill_of(address, value);
    CU_OK(cuGraphAddMemsetNode(&node, graph, after.data(), after.size(), &params, context.context));
    return node;
  }
  CUgraphNode copy(CUdeviceptr to, CUdeviceptr from, std::vector<CUgraphNode> after = {}) {
    CUgraphNode node{};
    const auto params = copy_of(to, from);
    CU_OK(cuGraphAddMemcpyNode(&node, graph, after.data(), after.size(), &params, context.context));
    return node;
  }
  void instantiate() { CU_OK(cuGraphInstantiate(&exec, graph, 0)); }
  void launch() {
    CU_OK(cuGraphLaunch(exec, nullptr));
    CU_OK(cuStreamSynchronize(nullptr));
  }
  static unsigned char byte(CUdeviceptr address) {
    unsigned char value = 0;
    CU_OK(cuMemcpyDtoH(&value, address, 1));
    return value;
  }
};

// Two chunks and an address at which one of them is mapped.
struct Remappable {
  CUdeviceptr address{};
  CUmemGenericAllocationHandle handles[2] = {};
  static constexpr std::size_t kSize = 2 * kMiB;

  explicit Remappable(bool second_on_host) {
    CUmemAllocationProp prop = device_prop(0);
    CU_OK(cuMemCreate(&handles[0], kSize, &prop, 0));
    if (second_on_host) {
      prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
      prop.location.id = 0;
    }
    CU_OK(cuMemCreate(&handles[1], kSize, &prop, 0));
    CU_OK(cuMemAddressReserve(&address, kSize, 0, 0, 0));
    map(0);
  }
  void map(int which) {
    CU_OK(cuMemMap(address, kSize, 0, handles[which], 0));
    CU_OK(allow(address, kSize, 0));
  }
  void swap() {
    CU_OK(cuMemUnmap(address, kSize));
    map(1);
  }
};

}  // namespace

TEST_CASE("simgpu: a graph runs its nodes after those they depend on, whatever order they were added in") {
  Stand s;
  const CUgraphNode last = s.copy(s.b, s.a);
  const CUgraphNode first = s.fill(s.a, 1);
  const CUgraphNode second = s.fill(s.a, 2, {first});
  CU_OK(cuGraphAddDependencies(s.graph, &second, &last, nullptr, 1));
  s.instantiate();
  s.launch();
  CHECK(Stand::byte(s.b) == 2);

  std::size_t edges = 0, roots = 0, count = 1;
  CU_OK(cuGraphGetEdges(s.graph, nullptr, nullptr, nullptr, &edges));
  CU_OK(cuGraphGetRootNodes(s.graph, nullptr, &roots));
  CHECK(edges == 2);
  CHECK(roots == 1);
  CUgraphNode found{};
  CU_OK(cuGraphNodeGetDependencies(last, &found, nullptr, &count));
  CHECK(found == second);
  CU_OK(cuGraphNodeGetDependentNodes(first, &found, nullptr, &count));
  CHECK(found == second);
}

TEST_CASE("simgpu: a graph with a cycle isn't instantiated") {
  Stand s;
  const CUgraphNode first = s.fill(s.a, 1);
  const CUgraphNode second = s.fill(s.b, 1, {first});
  CU_OK(cuGraphAddDependencies(s.graph, &second, &first, nullptr, 1));
  CHECK(cuGraphInstantiate(&s.exec, s.graph, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphAddDependencies(s.graph, &first, &second, nullptr, 1) == CUDA_ERROR_INVALID_VALUE);  // it is there already
  CU_OK(cuGraphRemoveDependencies(s.graph, &second, &first, nullptr, 1));
  s.instantiate();
}

TEST_CASE("simgpu: new parameters of an instantiated node hold for later launches only") {
  Stand s;
  const CUgraphNode fill = s.fill(s.a, 1);
  s.instantiate();
  StreamGate gate;
  CUstream stream{};
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  gate.close_in(stream);
  CU_OK(cuGraphLaunch(s.exec, stream));  // waits at the gate with the old value
  const auto params = fill_of(s.b, 2);
  CU_OK(cuGraphExecMemsetNodeSetParams(s.exec, fill, &params, s.context.context));
  gate.open();
  CU_OK(cuStreamSynchronize(stream));
  CHECK(Stand::byte(s.a) == 1);
  CHECK(Stand::byte(s.b) == 0);
  CU_OK(cuGraphLaunch(s.exec, stream));
  CU_OK(cuStreamSynchronize(stream));
  CHECK(Stand::byte(s.b) == 2);
  CUDA_MEMSET_NODE_PARAMS untouched{};
  CU_OK(cuGraphMemsetNodeGetParams(fill, &untouched));  // the graph's own node is as it was
  CHECK(untouched.dst == s.a);
}

TEST_CASE("simgpu: a node can be switched off and on") {
  Stand s;
  const CUgraphNode fill = s.fill(s.a, 7);
  s.instantiate();
  unsigned enabled = 0;
  CU_OK(cuGraphNodeGetEnabled(s.exec, fill, &enabled));
  CHECK(enabled == 1);
  CU_OK(cuGraphNodeSetEnabled(s.exec, fill, 0));
  s.launch();
  CHECK(Stand::byte(s.a) == 0);
  CU_OK(cuGraphNodeSetEnabled(s.exec, fill, 1));
  s.launch();
  CHECK(Stand::byte(s.a) == 7);
}

TEST_CASE("simgpu: an update takes a graph of the same shape and says what differs in another") {
  Stand s;
  s.fill(s.b, 2, {s.fill(s.a, 1)});
  s.instantiate();
  CUgraphExecUpdateResultInfo info{};

  SECTION("the same shape") {
    CU_OK(cuGraphDestroy(s.graph));
    CU_OK(cuGraphCreate(&s.graph, 0));
    s.fill(s.b, 4, {s.fill(s.a, 3)});
    CU_OK(cuGraphExecUpdate(s.exec, s.graph, &info));
    s.launch();
    CHECK(Stand::byte(s.a) == 3);
    CHECK(Stand::byte(s.b) == 4);
  }
  SECTION("one node more") {
    s.fill(s.a, 5);
    CHECK(cuGraphExecUpdate(s.exec, s.graph, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  }
  SECTION("another edge") {
    CU_OK(cuGraphDestroy(s.graph));
    CU_OK(cuGraphCreate(&s.graph, 0));
    s.fill(s.a, 3);
    s.fill(s.b, 4);
    CHECK(cuGraphExecUpdate(s.exec, s.graph, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  }
  SECTION("another type of node") {
    CU_OK(cuGraphDestroy(s.graph));
    CU_OK(cuGraphCreate(&s.graph, 0));
    const CUgraphNode second = s.copy(s.b, s.a, {s.fill(s.a, 3)});
    CHECK(cuGraphExecUpdate(s.exec, s.graph, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    CHECK(info.errorNode == second);
  }
}

TEST_CASE("simgpu: a copy node remembers the memory behind its operands") {
  Stand s;
  const bool to_host = GENERATE(false, true);
  CAPTURE(to_host);
  Remappable moving(to_host);
  CU_OK(cuMemsetD8(moving.address, 9, kBytes));
  const CUgraphNode copy = s.copy(s.a, moving.address);
  s.instantiate();
  s.launch();
  CHECK(Stand::byte(s.a) == 9);
  const auto same = copy_of(s.b, moving.address);
  CU_OK(cuGraphExecMemcpyNodeSetParams(s.exec, copy, &same, s.context.context));
  moving.swap();
  CHECK(cuGraphExecMemcpyNodeSetParams(s.exec, copy, &same, s.context.context) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuGraphLaunch(s.exec, nullptr));
  // Another chunk of the same device serves, memory of another kind doesn't.
  CHECK(cuCtxSynchronize() == (to_host ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS));
  if (to_host) expect_misuse({"graph node launched after the memory behind its operands moved", "context faulted"});
}

TEST_CASE("simgpu: operands of a copy node can't change their kind of memory") {
  Stand s;
  void* pinned = nullptr;
  CU_OK(cuMemHostAlloc(&pinned, kBytes, 0));
  const CUgraphNode copy = s.copy(s.b, s.a);
  s.instantiate();
  CUDA_MEMCPY3D params = copy_of(s.b, 0);
  params.srcMemoryType = CU_MEMORYTYPE_HOST;
  params.srcHost = pinned;
  CHECK(cuGraphExecMemcpyNodeSetParams(s.exec, copy, &params, s.context.context) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuMemFreeHost(pinned));
}

TEST_CASE("simgpu: host nodes run in order and may not call the driver") {
  Stand s;
  struct Seen {
    CUdeviceptr address;
    CUresult answer = CUDA_SUCCESS;
    int calls = 0;
  } seen{s.a};
  CUDA_HOST_NODE_PARAMS params{};
  params.fn = [](void* data) {
    auto& result = *static_cast<Seen*>(data);
    std::size_t free = 0, total = 0;
    result.answer = cuMemGetInfo(&free, &total);
    ++result.calls;
  };
  params.userData = &seen;
  CUgraphNode node{};
  CU_OK(cuGraphAddHostNode(&node, s.graph, nullptr, 0, &params));
  s.instantiate();
  s.launch();
  s.launch();
  CHECK(seen.calls == 2);
  CHECK(seen.answer == CUDA_ERROR_NOT_PERMITTED);
  expect_misuse({"driver call inside a host function"});
}

TEST_CASE("simgpu: a child graph runs where its node stands, and is a copy") {
  Stand s;
  CUgraph child{};
  CUgraphNode inner{}, node{}, found{};
  CU_OK(cuGraphCreate(&child, 0));
  const auto params = fill_of(s.a, 2);
  CU_OK(cuGraphAddMemsetNode(&inner, child, nullptr, 0, &params, s.context.context));
  const CUgraphNode before = s.fill(s.a, 1);
  CU_OK(cuGraphAddChildGraphNode(&node, s.graph, &before, 1, child));
  s.copy(s.b, s.a, {node});
  CUgraph copied{};
  CU_OK(cuGraphChildGraphNodeGetGraph(node, &copied));
  CHECK(copied != child);
  CU_OK(cuGraphNodeFindInClone(&found, inner, copied));
  CU_OK(cuGraphDestroy(child));
  s.instantiate();
  s.launch();
  CHECK(Stand::byte(s.b) == 2);
  const auto other = fill_of(s.a, 3);
  CU_OK(cuGraphExecMemsetNodeSetParams(s.exec, found, &other, s.context.context));
  s.launch();
  CHECK(Stand::byte(s.b) == 3);
}

TEST_CASE("simgpu: event nodes order a graph with work outside of it") {
  Stand s;
  CUevent wait{}, recorded{};
  CUgraphNode waiting{}, recording{};
  CUstream stream{}, other{};
  CU_OK(cuEventCreate(&wait, CU_EVENT_DISABLE_TIMING));
  CU_OK(cuEventCreate(&recorded, CU_EVENT_DISABLE_TIMING));
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CU_OK(cuGraphAddEventWaitNode(&waiting, s.graph, nullptr, 0, wait));
  const CUgraphNode copy = s.copy(s.b, s.a, {waiting});
  CU_OK(cuGraphAddEventRecordNode(&recording, s.graph, &copy, 1, recorded));
  s.instantiate();
  StreamGate gate;
  gate.close_in(other);
  CU_OK(cuMemsetD8Async(s.a, 6, kBytes, other));
  CU_OK(cuEventRecord(wait, other));
  CU_OK(cuGraphLaunch(s.exec, stream));
  CHECK(cuEventQuery(recorded) == CUDA_ERROR_NOT_READY);
  gate.open();
  CU_OK(cuEventSynchronize(recorded));
  CHECK(Stand::byte(s.b) == 6);
}

TEST_CASE("simgpu: launches of one instance don't overlap") {
  Stand s;
  struct Inside {
    std::atomic<int> now{0}, most{0};
  } inside;
  CUDA_HOST_NODE_PARAMS params{};
  params.fn = [](void* data) {
    auto& state = *static_cast<Inside*>(data);
    const int now = ++state.now;
    state.most = std::max(state.most.load(), now);
    for (std::atomic<int> spin{0}; spin < 20000; ++spin) {
    }
    --state.now;
  };
  params.userData = &inside;
  CUgraphNode node{};
  CU_OK(cuGraphAddHostNode(&node, s.graph, nullptr, 0, &params));
  s.instantiate();
  std::array<CUstream, 4> streams{};
  for (CUstream& stream : streams) CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 40; ++i) CU_OK(cuGraphLaunch(s.exec, streams[static_cast<std::size_t>(i % 4)]));
  CU_OK(cuCtxSynchronize());
  CHECK(inside.most == 1);
}

TEST_CASE("simgpu: a capture can go into a graph of the program, behind its nodes") {
  Stand s;
  CUstream stream{};
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUgraphNode first = s.fill(s.a, 4);
  CU_OK(cuStreamBeginCaptureToGraph(stream, s.graph, &first, nullptr, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CU_OK(cuMemcpyDtoDAsync(s.b, s.a, kBytes, stream));
  CUgraph captured{};
  CU_OK(cuStreamEndCapture(stream, &captured));
  CHECK(captured == s.graph);
  std::size_t edges = 0;
  CU_OK(cuGraphGetEdges(s.graph, nullptr, nullptr, nullptr, &edges));
  CHECK(edges == 1);
  s.instantiate();
  s.launch();
  CHECK(Stand::byte(s.b) == 4);
}

TEST_CASE("simgpu: stale handles of graphs and nodes are refused") {
  Stand s;
  const CUgraphNode node = s.fill(s.a, 1);
  CUgraphNodeType type{};
  CU_OK(cuGraphNodeGetType(node, &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_MEMSET);
  CUDA_HOST_NODE_PARAMS host{};
  CHECK(cuGraphHostNodeGetParams(node, &host) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuGraphDestroyNode(node));
  CHECK(cuGraphNodeGetType(node, &type) == CUDA_ERROR_INVALID_VALUE);
  CU_OK(cuGraphDestroy(s.graph));
  CHECK(cuGraphDestroy(s.graph) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphInstantiate(&s.exec, s.graph, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("simgpu: memory operations of a batch run in order") {
  Stand s;
  std::vector<CUstreamBatchMemOpParams> operations(2);
  operations[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operations[0].writeValue.address = s.a;
  operations[0].writeValue.value = 5;
  operations[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operations[1].waitValue.address = s.a;
  operations[1].waitValue.value = 5;
  operations[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  CU_OK(cuStreamBatchMemOp(nullptr, 2, operations.data(), 0));
  CU_OK(cuStreamSynchronize(nullptr));
  CHECK(Stand::byte(s.a) == 5);
  operations[0].writeValue.address += 2;
  CHECK(cuStreamBatchMemOp(nullptr, 2, operations.data(), 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("simgpu: the time of an event that a faulting graph never recorded is an error") {
  Stand s;
  CUevent first{}, second{};
  CUgraphNode node{};
  CU_OK(cuEventCreate(&first, CU_EVENT_DEFAULT));
  CU_OK(cuEventCreate(&second, CU_EVENT_DEFAULT));
  Remappable memory(false);
  const CUgraphNode fill = s.fill(memory.address, 1);
  CU_OK(cuGraphAddEventRecordNode(&node, s.graph, &fill, 1, second));
  s.instantiate();
  CU_OK(cuEventRecord(first, nullptr));
  CU_OK(cuCtxSynchronize());
  CU_OK(cuMemUnmap(memory.address, Remappable::kSize));
  CU_OK(cuGraphLaunch(s.exec, nullptr));
  CHECK(cuStreamSynchronize(nullptr) == CUDA_ERROR_ILLEGAL_ADDRESS);
  float elapsed = 0;
  CHECK(cuEventElapsedTime(&elapsed, first, second) == CUDA_ERROR_ILLEGAL_ADDRESS);
  simgpu_forget_misuse();
}

TEST_CASE("simgpu: an event of a capture is one of the graph's launch after that") {
  Stand s;
  CUevent event{};
  CUgraphNode node{};
  CUstream stream{};
  CUgraph captured{};
  CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU_OK(cuEventRecord(event, stream));
  CU_OK(cuStreamEndCapture(stream, &captured));
  CHECK(cuEventQuery(event) == CUDA_ERROR_CAPTURED_EVENT);
  CU_OK(cuGraphAddEventRecordNode(&node, s.graph, nullptr, 0, event));
  s.instantiate();
  s.launch();
  CU_OK(cuEventSynchronize(event));
}

TEST_CASE("simgpu: events between processes are no nodes of graphs") {
  Stand s;
  CUevent event{};
  CUgraphNode node{};
  CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
  CHECK(cuGraphAddEventRecordNode(&node, s.graph, nullptr, 0, event) == CUDA_ERROR_NOT_SUPPORTED);
}
