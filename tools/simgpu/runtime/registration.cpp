#include "tools/simgpu/runtime/registration.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tools/simgpu/runtime/calls.hpp"
#include "tools/simgpu/runtime/host_abi.hpp"

namespace simgpu::runtime {
namespace {

struct Managed {
  void** host_pointer;  // where compiled host code looks the address up
  std::string name;
};

struct Module {
  const void* image;
  std::mutex mutex;
  CUlibrary library = nullptr;  // guarded by mutex; null until first use
  std::vector<Managed> managed;
};

struct Function {
  Module* module;
  std::string name;  // mangled, as in the cubin
  CUkernel kernel = nullptr;
};

struct Variable {
  Module* module;
  std::string name;
};

// Never destroyed: it is filled before main, perhaps before our own static constructors, and used in static
// destructors.
struct Registry {
  std::mutex mutex;
  std::unordered_map<const void*, Function> functions;
  std::unordered_map<const void*, Variable> variables;
  std::unordered_set<const void*> library_kernels;  // the program's own, see remember_kernel
};

Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

Module* module_of(void** handle) { return reinterpret_cast<Module*>(handle); }

cudaError_t load(Module& module, CUlibrary& library) {
  std::lock_guard lock(module.mutex);
  if (module.library == nullptr) {
    const CUresult result =
        driver_call<row::internal_load_module>(&module.library, module.image, nullptr, nullptr, 0U, nullptr, nullptr, 0U);
    if (result != CUDA_SUCCESS) {
      module.library = nullptr;
      return translate(result);
    }
  }
  library = module.library;
  return cudaSuccess;
}

}  // namespace

cudaError_t find_kernel(const void* function, CUkernel& kernel) {
  Module* module = nullptr;
  std::string name;
  {
    std::lock_guard lock(registry().mutex);
    const auto found = registry().functions.find(function);
    if (found == registry().functions.end()) {
      if (!registry().library_kernels.contains(function)) return cudaErrorInvalidDeviceFunction;
      kernel = as<CUkernel>(const_cast<void*>(function));
      return cudaSuccess;
    }
    if (found->second.kernel != nullptr) {
      kernel = found->second.kernel;
      return cudaSuccess;
    }
    module = found->second.module;
    name = found->second.name;
  }
  CUlibrary library = nullptr;
  if (const cudaError_t error = load(*module, library)) return error;
  if (const CUresult result = driver_call<row::internal_get_kernel>(&kernel, library, name.c_str()))
    return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : translate(result);
  std::lock_guard lock(registry().mutex);
  const auto found = registry().functions.find(function);
  if (found != registry().functions.end()) found->second.kernel = kernel;
  return cudaSuccess;
}

void remember_kernel(CUkernel kernel) {
  std::lock_guard lock(registry().mutex);
  registry().library_kernels.insert(kernel);
}

cudaError_t find_symbol(const void* symbol, CUdeviceptr& address, std::size_t& size) {
  Module* module = nullptr;
  std::string name;
  {
    std::lock_guard lock(registry().mutex);
    const auto found = registry().variables.find(symbol);
    if (found == registry().variables.end()) return cudaErrorInvalidSymbol;
    module = found->second.module;
    name = found->second.name;
  }
  CUlibrary library = nullptr;
  if (const cudaError_t error = load(*module, library)) return error;
  const CUresult result = driver_call<row::internal_get_global>(&address, &size, library, name.c_str());
  return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : translate(result);
}

SIMGPU_API void** __cudaRegisterFatBinary(void* image) {
  auto* module = new Module;
  module->image = image;
  return reinterpret_cast<void**>(module);
}

SIMGPU_API void __cudaRegisterFatBinaryEnd(void**) {}

// Runs at exit, or when a library with kernels is closed: its host functions may come back as somebody else's
// addresses. The driver's library stays loaded: at exit the driver may be gone already.
SIMGPU_API void __cudaUnregisterFatBinary(void** handle) {
  const Module* module = module_of(handle);
  std::lock_guard lock(registry().mutex);
  std::erase_if(registry().functions, [&](const auto& entry) { return entry.second.module == module; });
  std::erase_if(registry().variables, [&](const auto& entry) { return entry.second.module == module; });
}

SIMGPU_API void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int, uint3*, uint3*,
                                       dim3*, dim3*, int*) {
  std::lock_guard lock(registry().mutex);
  registry().functions[host_function] = Function{module_of(handle), name};
}

SIMGPU_API void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name, int, size_t, int, int) {
  std::lock_guard lock(registry().mutex);
  registry().variables[host_variable] = Variable{module_of(handle), name};
}

SIMGPU_API void __cudaRegisterManagedVar(void** handle, void** host_pointer, char*, const char* name, int, size_t, int, int) {
  module_of(handle)->managed.push_back({host_pointer, name});
  std::lock_guard lock(registry().mutex);
  registry().variables[host_pointer] = Variable{module_of(handle), name};
}

// Host code calls this before it touches a __managed__ variable of the module.
SIMGPU_API char __cudaInitModule(void** handle) {
  Module& module = *module_of(handle);
  if (module.managed.empty()) return 1;
  CUlibrary library = nullptr;
  if (const cudaError_t error = context_ready()) return finish(error), 0;
  if (const cudaError_t error = load(module, library)) return finish(error), 0;
  for (const Managed& variable : module.managed) {
    CUdeviceptr pointer = 0;
    std::size_t size = 0;
    if (const CUresult result = driver_call<row::internal_get_managed>(&pointer, &size, library, variable.name.c_str()))
      return finish(result), 0;
    *variable.host_pointer = reinterpret_cast<void*>(pointer);
  }
  return 1;
}

}  // namespace simgpu::runtime
