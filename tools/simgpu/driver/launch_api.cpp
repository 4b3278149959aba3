// Kernel launches: parameters are copied now, the twin runs when the stream gets there.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "impl.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/engines.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/module.hpp"
#include "tools/simgpu/driver/process.hpp"
#include "tools/simgpu/driver/registry.hpp"

namespace simgpu {
namespace {

struct Shape {
  SimDim3 grid, block;
  unsigned dynamic_shared;
};

bool shape_valid(const Shape& s, const Function& function) {
  const SimDim3 &g = s.grid, &b = s.block;
  if (g.x == 0 || g.y == 0 || g.z == 0 || b.x == 0 || b.y == 0 || b.z == 0) return false;
  if (g.x > 2147483647u || g.y > 65535 || g.z > 65535) return false;
  if (b.x > 1024 || b.y > 1024 || b.z > 64 || std::uint64_t{b.x} * b.y * b.z > 1024) return false;
  const auto most = static_cast<std::size_t>(control().profile().shared_per_block_optin);
  return s.dynamic_shared + function.kernel.static_shared <= most;
}

// Copies the parameters out of the program's hands. False when they are given in neither form.
bool copy_parameters(const Function& function, void** parameters, void** extra, std::vector<std::byte>& packed) {
  packed.resize(function.parameter_bytes);
  if (parameters) {
    for (std::size_t i = 0; i < function.kernel.parameters.size(); ++i) {
      const Parameter& p = function.kernel.parameters[i];
      std::memcpy(packed.data() + p.offset, parameters[i], p.size);
    }
    return true;
  }
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (void** item = extra; item && *item != CU_LAUNCH_PARAM_END; item += 2) {
    if (item[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = item[1];
    if (item[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<const std::size_t*>(item[1]);
  }
  if (!buffer) return packed.empty();
  if (size < packed.size()) return false;
  std::memcpy(packed.data(), buffer, packed.size());
  return true;
}

SimTwin twin_of(Function& function) {
  const std::lock_guard lock(function.mutex);
  if (!function.twin) {
    function.twin = find_twin(function.kernel.name);
    if (!*function.twin) {
      log_line(
          "simgpu: kernel %s has no twin. Compile its source with tools/simgpu/twins/host_kernels.hpp into "
          "<executable>.twins.so, or name the object in SIM_KERNELS",
          function.kernel.name.c_str());
    }
  }
  return *function.twin;
}

CUresult run(SimTwin twin, const Function& function, const Shape& shape, std::vector<std::byte>& packed) {
  std::vector<void*> pointers;
  pointers.reserve(function.kernel.parameters.size());
  for (const Parameter& p : function.kernel.parameters) pointers.push_back(packed.data() + p.offset);
  const SimLaunch launch{shape.grid, shape.block, shape.dynamic_shared, static_cast<unsigned>(pointers.size()),
                         pointers.data()};
  twin(&launch);
  return CUDA_SUCCESS;
}

CUresult launch(CUfunction handle, const Shape& shape, CUstream stream_handle, void** parameters, void** extra) {
  const auto function = registry<Function>().find(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  StreamRef stream;
  if (const CUresult result = resolve_stream(stream_handle, stream)) return result;
  if (!shape_valid(shape, *function)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::byte> packed;
  if (!copy_parameters(*function, parameters, extra, packed)) return CUDA_ERROR_INVALID_VALUE;
  const SimTwin twin = twin_of(*function);
  if (!twin) return CUDA_ERROR_NOT_FOUND;

  Operation operation;
  operation.type = CU_GRAPH_NODE_TYPE_KERNEL;
  operation.writes_host = true;  // it may write pinned memory
  operation.run = [=, packed = std::move(packed)]() mutable {
    const LaunchTime time;
    return run(twin, *function, shape, packed);
  };
  return submit(stream, std::move(operation));
}

}  // namespace

namespace impl {

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream,
                        void** parameters, void** extra) {
  if (parameters && extra) return CUDA_ERROR_INVALID_VALUE;
  return launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared}, stream, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                                   CUstream stream, void** parameters) {
  return launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared}, stream, parameters, nullptr);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  if (!config || (parameters && extra)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    // These would have to record events; the others only tune.
    const CUlaunchAttributeID id = config->attrs[i].id;
    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
      log_line("simgpu: cuLaunchKernelEx: launch attribute %d is not simulated", static_cast<int>(id));
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  const Shape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                    {config->blockDimX, config->blockDimY, config->blockDimZ},
                    config->sharedMemBytes};
  return launch(function, shape, config->hStream, parameters, extra);
}

}  // namespace impl
}  // namespace simgpu
