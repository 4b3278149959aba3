// Waits for and writes of words in memory, as operations of a stream.
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "tools/simgpu/driver/work.hpp"

namespace simgpu {

class MemOpWork : public Work {
 public:
  static CUresult make(const CUstreamBatchMemOpParams* operations, unsigned count, std::shared_ptr<MemOpWork>& work);
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
  std::string label() const override { return "memory operations"; }
  CUresult perform(Context& context) const override;
  bool writes() const;
  const std::vector<CUstreamBatchMemOpParams>& operations() const { return operations_; }

 private:
  std::vector<CUstreamBatchMemOpParams> operations_;
};

}  // namespace simgpu
