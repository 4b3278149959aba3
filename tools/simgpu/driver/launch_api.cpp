// Kernel launches: parameters are copied now, the twin runs when the stream gets there.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "impl.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/engines.hpp"
#include "tools/simgpu/driver/guard.hpp"
#include "tools/simgpu/driver/launch.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/module.hpp"
#include "tools/simgpu/driver/process.hpp"
#include "tools/simgpu/driver/registry.hpp"

namespace simgpu {
namespace {

bool shape_valid(const LaunchShape& s, const Function& function) {
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

void do_nothing(const SimLaunch*) {}

SimTwin twin_of(Function& function) {
  if (function.kernel.does_nothing) return do_nothing;
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

CUresult launch(CUfunction handle, const LaunchShape& shape, CUstream stream_handle, void** parameters, void** extra) {
  StreamRef stream;
  if (const CUresult result = resolve_stream(stream_handle, stream)) return result;
  std::shared_ptr<KernelWork> work;
  if (const CUresult result = KernelWork::make(handle, shape, parameters, extra, work)) return result;
  const Context* const owner = work->function()->module->owner();
  if (owner && owner != &stream->context) {
    misuse("kernel of another context launched", work->function()->kernel.name);
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  Operation operation;
  operation.writes_host = true;  // it may write pinned memory
  operation.work = std::move(work);
  return submit(stream, std::move(operation));
}

}  // namespace

CUresult KernelWork::make(CUfunction handle, const LaunchShape& shape, void** parameters, void** extra,
                          std::shared_ptr<KernelWork>& work) {
  auto made = std::make_shared<KernelWork>();
  made->function_ = registry<Function>().find(handle);
  if (!made->function_) return CUDA_ERROR_INVALID_HANDLE;
  if ((parameters && extra) || !shape_valid(shape, *made->function_)) return CUDA_ERROR_INVALID_VALUE;
  made->shape_ = shape;
  if (!copy_parameters(*made->function_, parameters, extra, made->packed_)) return CUDA_ERROR_INVALID_VALUE;
  for (const Parameter& p : made->function_->kernel.parameters) made->pointers_.push_back(made->packed_.data() + p.offset);
  made->twin_ = twin_of(*made->function_);
  if (!made->twin_) return CUDA_ERROR_NOT_FOUND;
  work = std::move(made);
  return CUDA_SUCCESS;
}

CUresult KernelWork::perform(Context& context) const {
  const LaunchTime time;
  const SimLaunch launch{shape_.grid, shape_.block, shape_.dynamic_shared, static_cast<unsigned>(pointers_.size()),
                         parameter_array()};
  KernelRun guarded(context, function_->kernel.name.c_str());
  return guarded.run([&] { twin_(&launch); });
}

namespace impl {

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream,
                        void** parameters, void** extra) {
  return launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared}, stream, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                                   CUstream stream, void** parameters) {
  return launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared}, stream, parameters, nullptr);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    // These would have to record events; the others only tune.
    const CUlaunchAttributeID id = config->attrs[i].id;
    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
      log_line("simgpu: cuLaunchKernelEx: launch attribute %d is not simulated", static_cast<int>(id));
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  const LaunchShape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                          {config->blockDimX, config->blockDimY, config->blockDimZ},
                          config->sharedMemBytes};
  return launch(function, shape, config->hStream, parameters, extra);
}

}  // namespace impl
}  // namespace simgpu
