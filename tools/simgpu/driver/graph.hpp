// Graphs: nodes with dependencies, and what instantiating makes of them.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/simgpu/driver/event.hpp"
#include "tools/simgpu/driver/stream.hpp"
#include "tools/simgpu/driver/work.hpp"

namespace simgpu {

class Graph;

struct Node {
  Node(Graph& owner, WorkRef node_work, Context* node_context);
  Graph& graph;
  const std::uint64_t id;
  WorkRef work;
  Context* const context;           // nullptr where the work needs none
  std::shared_ptr<Graph> child;     // of a child graph node
  std::uint64_t cloned_from = 0;    // id of the node that this one is a clone of
  std::vector<Node*> dependencies;  // in the order in which they were given
};
using NodeRef = std::shared_ptr<Node>;

// The work of nodes that do nothing themselves: empty nodes and child graphs.
class NoWork : public Work {
 public:
  explicit NoWork(CUgraphNodeType type) : type_(type) {}
  CUgraphNodeType type() const override { return type_; }
  CUresult perform(Context&) const override { return CUDA_SUCCESS; }

 private:
  const CUgraphNodeType type_;
};

// Records an event, or waits for one, as a node.
class EventWork : public Work {
 public:
  EventWork(CUgraphNodeType type, EventRef event) : type_(type), event_(std::move(event)) {}
  CUgraphNodeType type() const override { return type_; }
  CUresult perform(Context&) const override;
  const EventRef& event() const { return event_; }

 private:
  const CUgraphNodeType type_;
  const EventRef event_;
};

// Not thread-safe but for the mutex: callers hold it.
class Graph {
 public:
  ~Graph();

  std::mutex mutex;
  bool destroyed = false;  // its handle is gone; a capture may still write into it
  std::vector<NodeRef>& nodes() { return nodes_; }

  // The new node's handle is registered.
  Node& add(WorkRef work, Context* context, std::vector<Node*> dependencies);
  void remove(Node& node);
  bool contains(const Node* node) const;
  std::vector<Node*> dependents(const Node& node) const;
  std::vector<Node*> leaves() const;
  // Dependencies first; empty when there is a cycle.
  std::vector<Node*> order() const;
  std::shared_ptr<Graph> clone();

 private:
  std::vector<NodeRef> nodes_;
};
using GraphRef = std::shared_ptr<Graph>;

// What a copy or fill node was instantiated for: the memory behind its operands then.
struct Operand {
  std::uint64_t buffer_id = 0;  // 0: not memory of the driver
  bool on_host = false;
  int device = -1;
  friend bool operator==(const Operand&, const Operand&) = default;
};
using Operands = std::vector<Operand>;
Operands operands_of(const Work& work);
// Same kinds of memory on the same devices, whichever mapping it is.
bool same_kinds(const Operands& a, const Operands& b);

struct ExecNode {
  std::uint64_t id = 0;  // of the node in the graph
  WorkRef work;
  Context* context = nullptr;
  bool enabled = true;
  Operands operands;
  std::vector<std::size_t> dependencies;  // positions among the graph's nodes; for updates
};

class GraphExec {
 public:
  using Nodes = std::vector<ExecNode>;
  // False when the graph has a cycle.
  bool fill_from(Graph& graph);

  std::mutex mutex;
  unsigned long long flags = 0;
  std::shared_ptr<const Nodes> nodes;  // replaced as a whole: launches keep what they saw
  Point last_launch;                   // launches of one exec don't overlap

  // A copy of the nodes with one changed by `change`, put in place. False: the node isn't part of this exec.
  template <class Change>
  CUresult change(std::uint64_t id, Change apply) {
    const std::lock_guard lock(mutex);
    auto changed = std::make_shared<Nodes>(*nodes);
    for (ExecNode& node : *changed) {
      if (node.id != id) continue;
      if (const CUresult result = apply(node)) return result;
      nodes = std::move(changed);
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  }
};
using ExecRef = std::shared_ptr<GraphExec>;

// Puts a launch into the stream, or into its capture.
CUresult launch_graph(const ExecRef& exec, const StreamRef& stream);
// Gives the exec the parameters of a graph of the same shape. The reason of a failure, and the node, are in `info`.
CUresult update_exec(GraphExec& exec, Graph& graph, CUgraphExecUpdateResultInfo& info);

inline CUgraphNode handle_of(const Node* node) { return reinterpret_cast<CUgraphNode>(const_cast<Node*>(node)); }

}  // namespace simgpu
