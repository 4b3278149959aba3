// A kernel with the parameters it was launched with.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "tools/simgpu/driver/module.hpp"
#include "tools/simgpu/driver/work.hpp"

namespace simgpu {

struct LaunchShape {
  SimDim3 grid, block;
  unsigned dynamic_shared;
};

class KernelWork : public Work {
 public:
  // Copies the parameters out of the program's hands. A kernel without a twin is refused with NOT_FOUND.
  static CUresult make(CUfunction handle, const LaunchShape& shape, void** parameters, void** extra,
                       std::shared_ptr<KernelWork>& work);
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_KERNEL; }
  std::string label() const override { return function_->kernel.name; }
  CUresult perform(Context& context) const override;

  const std::shared_ptr<Function>& function() const { return function_; }
  const LaunchShape& shape() const { return shape_; }
  // One pointer per parameter, into this object: the form in which a program gives and a twin takes them.
  void** parameter_array() const { return const_cast<void**>(pointers_.data()); }

 private:
  std::shared_ptr<Function> function_;
  SimTwin twin_ = nullptr;
  LaunchShape shape_{};
  std::vector<std::byte> packed_;
  std::vector<void*> pointers_;
};

}  // namespace simgpu
