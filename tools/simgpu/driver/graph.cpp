#include "tools/simgpu/driver/graph.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include "tools/simgpu/driver/address_space.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/copy.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/registry.hpp"
#include "tools/simgpu/driver/timeline.hpp"

namespace simgpu {
namespace {

// All nodes of a graph in order, those of child graphs in place of their node.
bool flatten(Graph& graph, GraphExec::Nodes& out) {
  const std::vector<Node*> order = graph.order();
  if (order.size() != graph.nodes().size()) return false;
  for (const Node* const node : order) {
    ExecNode exec{node->id, node->work, node->context, true, operands_of(*node->work), {}};
    for (const Node* const dependency : node->dependencies) {
      const auto found = std::ranges::find(graph.nodes(), dependency, &NodeRef::get);
      exec.dependencies.push_back(static_cast<std::size_t>(found - graph.nodes().begin()));
    }
    std::ranges::sort(exec.dependencies);
    out.push_back(std::move(exec));
    if (!node->child) continue;
    const std::lock_guard lock(node->child->mutex);
    if (!flatten(*node->child, out)) return false;
  }
  return true;
}

// A node's error ends the launch and faults the context, like that of an operation outside a graph.
CUresult run_nodes(const GraphExec::Nodes& nodes, Context& launcher) {
  for (const ExecNode& node : nodes) {
    Context& context = node.context ? *node.context : launcher;
    if (const CUresult fault = launcher.fault()) return fault;
    if (!node.enabled) continue;
    if (!same_kinds(operands_of(*node.work), node.operands)) {
      misuse("graph node launched after the memory behind its operands moved",
             "node type " + std::to_string(node.work->type()));
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    if (const CUresult result = perform_noted(*node.work, context)) return result;
  }
  return CUDA_SUCCESS;
}

class LaunchWork : public Work {
 public:
  explicit LaunchWork(std::shared_ptr<const GraphExec::Nodes> nodes) : nodes_(std::move(nodes)) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_GRAPH; }
  CUresult perform(Context& context) const override { return run_nodes(*nodes_, context); }

 private:
  const std::shared_ptr<const GraphExec::Nodes> nodes_;
};

bool is_event(const ExecNode& node, CUgraphNodeType type) { return node.enabled && node.work->type() == type; }
const EventRef& event_of(const ExecNode& node) { return static_cast<const EventWork&>(*node.work).event(); }

}  // namespace

Node::Node(Graph& owner, WorkRef node_work, Context* node_context)
    : graph(owner), id(next_object_id()), work(std::move(node_work)), context(node_context) {}

CUresult EventWork::perform(Context&) const {
  if (type_ != CU_GRAPH_NODE_TYPE_EVENT_RECORD) return CUDA_SUCCESS;  // the launch waits for the event before it begins
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::lock_guard lock(event_->mutex);
  event_->stamp = std::make_shared<Stamp>();
  event_->stamp->nanos.store(static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
  return CUDA_SUCCESS;
}

Graph::~Graph() {
  for (const NodeRef& node : nodes_) registry<Node>().take(node.get());
}

Node& Graph::add(WorkRef work, Context* context, std::vector<Node*> dependencies) {
  auto node = std::make_shared<Node>(*this, std::move(work), context);
  node->dependencies = std::move(dependencies);
  registry<Node>().add(node);
  nodes_.push_back(std::move(node));
  return *nodes_.back();
}

void Graph::remove(Node& node) {
  for (const NodeRef& other : nodes_) std::erase(other->dependencies, &node);
  registry<Node>().take(&node);
  std::erase_if(nodes_, [&](const NodeRef& other) { return other.get() == &node; });
}

bool Graph::contains(const Node* node) const { return std::ranges::find(nodes_, node, &NodeRef::get) != nodes_.end(); }

std::vector<Node*> Graph::dependents(const Node& node) const {
  std::vector<Node*> found;
  for (const NodeRef& other : nodes_) {
    if (std::ranges::count(other->dependencies, &node)) found.push_back(other.get());
  }
  return found;
}

std::vector<Node*> Graph::leaves() const {
  std::map<const Node*, int> uses;
  for (const NodeRef& node : nodes_) {
    for (const Node* const dependency : node->dependencies) ++uses[dependency];
  }
  std::vector<Node*> found;
  for (const NodeRef& node : nodes_) {
    if (!uses.contains(node.get())) found.push_back(node.get());
  }
  return found;
}

std::vector<Node*> Graph::order() const {
  std::map<const Node*, std::size_t> missing;
  std::map<const Node*, std::vector<Node*>> users;
  std::vector<Node*> ready;
  for (const NodeRef& node : nodes_) {
    missing[node.get()] = node->dependencies.size();
    for (const Node* const dependency : node->dependencies) users[dependency].push_back(node.get());
    if (node->dependencies.empty()) ready.push_back(node.get());
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    for (Node* const user : users[ready[i]]) {
      if (--missing[user] == 0) ready.push_back(user);
    }
  }
  if (ready.size() != nodes_.size()) ready.clear();
  return ready;
}

GraphRef Graph::clone() {
  auto copy = std::make_shared<Graph>();
  std::map<const Node*, Node*> twin;
  for (const NodeRef& node : nodes_) {
    Node& made = copy->add(node->work, node->context, {});
    made.cloned_from = node->id;
    twin[node.get()] = &made;
    if (!node->child) continue;
    const std::lock_guard lock(node->child->mutex);
    made.child = node->child->clone();
    registry<Graph>().add(made.child);
  }
  for (const NodeRef& node : nodes_) {
    for (const Node* const dependency : node->dependencies) twin[node.get()]->dependencies.push_back(twin[dependency]);
  }
  return copy;
}

Operands operands_of(const Work& work) {
  std::vector<std::uintptr_t> addresses;
  if (const auto* copy = dynamic_cast<const CopyWork*>(&work)) {
    addresses = {copy->request().destination.address, copy->request().source.address};
  } else if (const auto* fill = dynamic_cast<const FillWork*>(&work)) {
    addresses = {fill->request().address};
  }
  Operands operands;
  const std::lock_guard lock(memory_mutex());
  for (const std::uintptr_t address : addresses) {
    const Range* const range = address_space().find(address);
    operands.push_back(range ? Operand{range->buffer_id, range->on_host(), range->device} : Operand{0, true, -1});
  }
  return operands;
}

bool same_kinds(const Operands& a, const Operands& b) {
  return std::ranges::equal(
      a, b, [](const Operand& x, const Operand& y) { return x.on_host == y.on_host && (x.on_host || x.device == y.device); });
}

bool GraphExec::fill_from(Graph& graph) {
  auto flat = std::make_shared<Nodes>();
  const std::lock_guard lock(graph.mutex);
  if (!flatten(graph, *flat)) return false;
  nodes = std::move(flat);
  return true;
}

CUresult launch_graph(const ExecRef& exec, const StreamRef& stream) {
  const std::lock_guard lock(exec->mutex);
  Operation operation;
  operation.work = std::make_shared<LaunchWork>(exec->nodes);
  operation.writes_host = true;
  operation.after.push_back(exec->last_launch);
  const auto records = [&](const EventRef& event) {
    return std::ranges::any_of(*exec->nodes, [&](const ExecNode& node) {
      return is_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD) && event_of(node) == event;
    });
  };
  for (const ExecNode& node : *exec->nodes) {
    if (!is_event(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT) || records(event_of(node))) continue;
    const std::lock_guard event_lock(event_of(node)->mutex);
    operation.after.push_back(event_of(node)->point);
  }
  Point point;
  if (const CUresult result = submit(stream, std::move(operation), &point)) return result;
  if (!point.stream) return CUDA_SUCCESS;  // captured
  exec->last_launch = point;
  for (const ExecNode& node : *exec->nodes) {
    if (!is_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD)) continue;
    const EventRef& event = event_of(node);
    {
      const std::lock_guard capture_lock(capture_mutex());
      event->capture.reset();  // its last record is this one
    }
    const std::lock_guard event_lock(event->mutex);
    event->recorded = true;
    event->point = point;
  }
  return CUDA_SUCCESS;
}

CUresult update_exec(GraphExec& exec, Graph& graph, CUgraphExecUpdateResultInfo& info) {
  info = {};
  GraphExec fresh;
  const auto failed = [&](CUgraphExecUpdateResult reason, const ExecNode* node) {
    info.result = reason;
    if (node) {
      for (const NodeRef& candidate : graph.nodes()) {
        if (candidate->id == node->id) info.errorNode = handle_of(candidate.get());
      }
    }
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  };
  if (!fresh.fill_from(graph)) return failed(CU_GRAPH_EXEC_UPDATE_ERROR, nullptr);
  const std::lock_guard lock(exec.mutex);
  const GraphExec::Nodes& before = *exec.nodes;
  const GraphExec::Nodes& wanted = *fresh.nodes;
  if (before.size() != wanted.size()) return failed(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  auto updated = std::make_shared<GraphExec::Nodes>(before);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].work->type() != wanted[i].work->type()) {
      return failed(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, &wanted[i]);
    }
    if (before[i].dependencies != wanted[i].dependencies) {
      return failed(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, &wanted[i]);
    }
    if (!same_kinds(before[i].operands, wanted[i].operands) || before[i].context != wanted[i].context) {
      return failed(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, &wanted[i]);
    }
    (*updated)[i].work = wanted[i].work;
    (*updated)[i].operands = wanted[i].operands;
  }
  exec.nodes = std::move(updated);
  info.result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
