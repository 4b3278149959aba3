#include "tools/simgpu/driver/module.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/memory.hpp"
#include "tools/simgpu/driver/registry.hpp"

namespace simgpu {

Module::Module(Image image, Context* owner) : owner_(owner), global_list_(std::move(image.globals)) {
  for (Kernel& kernel : image.kernels) {
    auto function = std::make_shared<Function>();
    function->module = this;
    for (const Parameter& p : kernel.parameters) {
      function->parameter_bytes = std::max<std::size_t>(function->parameter_bytes, std::size_t{p.offset} + p.size);
    }
    function->kernel = std::move(kernel);
    functions_.push_back(std::move(function));
  }
}

std::shared_ptr<Function> Module::function(const std::string& name) const {
  const auto found = std::ranges::find_if(functions_, [&](const auto& f) { return f->kernel.name == name; });
  return found == functions_.end() ? nullptr : *found;
}

CUresult Module::create(Context& context, const Global& global, CUdeviceptr& address) {
  if (const CUresult result = allocate_device(context, std::max<std::size_t>(global.size, 1), address)) return result;
  auto* const bytes = reinterpret_cast<char*>(address);
  const std::lock_guard lock(memory_mutex());
  address_space().open_span(address, address + global.size, true);
  std::memset(bytes, 0, global.size);
  std::memcpy(bytes, global.initial.data(), std::min(global.size, global.initial.size()));
  address_space().close_span(address, address + global.size, true);
  globals_[{&context, global.name}] = address;
  return CUDA_SUCCESS;
}

CUresult Module::global(Context& context, const std::string& name, CUdeviceptr& address, std::size_t& size) {
  const auto global = std::ranges::find(global_list_, name, &Global::name);
  if (global == global_list_.end()) return CUDA_ERROR_NOT_FOUND;
  size = global->size;
  const std::lock_guard lock(mutex_);
  const auto known = globals_.find({&context, name});
  if (known == globals_.end()) return create(context, *global, address);
  address = known->second;
  return CUDA_SUCCESS;
}

CUresult Module::create_globals(Context& context) {
  const std::lock_guard lock(mutex_);
  for (const Global& global : global_list_) {
    CUdeviceptr address = 0;
    if (const CUresult result = create(context, global, address)) return result;
  }
  return CUDA_SUCCESS;
}

void Module::free_globals(Context& current) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, address] : globals_) free_device(current, address);
  globals_.clear();
}

void Module::forget_globals_of(const Context& context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(globals_, [&](const auto& item) { return item.first.first == &context; });
}

CUresult load_module(const void* image, Context* owner, std::shared_ptr<Module>& module) {
  Image parsed;
  std::string error;
  if (!parse_image(image, parsed, error)) {
    log_line("simgpu: a module image was refused: %s", error.c_str());
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  module = std::make_shared<Module>(std::move(parsed), owner);
  if (owner) {
    if (const CUresult result = module->create_globals(*owner)) {
      module->free_globals(*owner);
      return result;
    }
  }
  registry<Module>().add(module);
  for (const auto& function : module->functions()) registry<Function>().add(function);
  return CUDA_SUCCESS;
}

void unload_module(const std::shared_ptr<Module>& module, Context& current) {
  registry<Module>().take(module.get());
  for (const auto& function : module->functions()) registry<Function>().take(function.get());
  module->free_globals(current);
}

void unload_modules_of(const Context& context) {
  registry<Module>().remove_if([&](Module& module) {
    module.forget_globals_of(context);
    if (module.owner() != &context) return false;
    for (const auto& function : module.functions()) registry<Function>().take(function.get());
    return true;
  });
}

}  // namespace simgpu
