// What an operation of a stream or a node of a graph does. Immutable: a node's new parameters are a new object, so that a
// launch that is on its way keeps those it was launched with.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>

namespace simgpu {

class Context;

class Work {
 public:
  Work() = default;
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  virtual CUgraphNodeType type() const = 0;
  // For the timeline; without quotes or backslashes.
  virtual std::string label() const { return "node type " + std::to_string(static_cast<int>(type())); }
  // On the worker, with the context that the work belongs to. An error faults that context (sticky).
  virtual CUresult perform(Context& context) const = 0;
};

using WorkRef = std::shared_ptr<const Work>;

}  // namespace simgpu
