// Functions of the program that run in a stream. Driver calls are not permitted inside.
#pragma once

#include "tools/simgpu/driver/calls.hpp"
#include "tools/simgpu/driver/work.hpp"

namespace simgpu {

template <class Function>
void run_host_function(Function function) {
  inside_host_function = true;
  function();
  inside_host_function = false;
}

class HostWork : public Work {
 public:
  explicit HostWork(const CUDA_HOST_NODE_PARAMS& params) : params_(params) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_HOST; }
  std::string label() const override { return "host function"; }
  CUresult perform(Context&) const override {
    run_host_function([&] { params_.fn(params_.userData); });
    return CUDA_SUCCESS;
  }
  const CUDA_HOST_NODE_PARAMS& params() const { return params_; }

 private:
  const CUDA_HOST_NODE_PARAMS params_;
};

}  // namespace simgpu
