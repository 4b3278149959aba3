// Modules and libraries: kernels and global variables of an image. A library belongs to no context: its
// globals come into being in each context that asks for them.
#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tools/simgpu/driver/image.hpp"
#include "tools/simgpu/driver/twins.hpp"

namespace simgpu {

class Context;
class Module;

// Serves as CUfunction and as CUkernel.
struct Function {
  Module* module = nullptr;  // outlives the function's handle
  Kernel kernel;
  std::size_t parameter_bytes = 0;

  std::mutex mutex;
  std::map<int, int> attributes;  // set by the program
  std::optional<SimTwin> twin;    // looked up at the first launch
};

class Module {
 public:
  Module(Image image, Context* owner);

  Context* owner() const { return owner_; }  // nullptr: a library
  std::shared_ptr<Function> function(const std::string& name) const;
  const std::vector<std::shared_ptr<Function>>& functions() const { return functions_; }

  CUresult global(Context& context, const std::string& name, CUdeviceptr& address, std::size_t& size);
  // Makes all globals exist in the context: a module's do from its load on.
  CUresult create_globals(Context& context);
  void free_globals(Context& current);
  void forget_globals_of(const Context& context);

 private:
  CUresult create(Context& context, const Global& global, CUdeviceptr& address);

  Context* const owner_;
  std::vector<Global> global_list_;
  std::vector<std::shared_ptr<Function>> functions_;
  std::mutex mutex_;
  std::map<std::pair<const Context*, std::string>, CUdeviceptr> globals_;
};

// Reads an image and registers module and functions. `owner` as in Module.
CUresult load_module(const void* image, Context* owner, std::shared_ptr<Module>& module);
// Takes the handles away and frees the globals.
void unload_module(const std::shared_ptr<Module>& module, Context& current);
// The context ends: its modules go, libraries forget their globals there.
void unload_modules_of(const Context& context);

}  // namespace simgpu
