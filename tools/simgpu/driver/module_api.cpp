// Modules, libraries, functions and kernels as the program sees them.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "impl.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/module.hpp"
#include "tools/simgpu/driver/process.hpp"
#include "tools/simgpu/driver/registry.hpp"

namespace simgpu {
namespace {

constexpr int kMaxThreads = 1024;

std::shared_ptr<Function> find_function(const void* handle) { return registry<Function>().find(handle); }
std::shared_ptr<Module> find_module(const void* handle) { return registry<Module>().find(handle); }

template <class Handle>
CUresult function_of(const void* module_handle, const char* name, Handle* handle) {
  if (!handle || !name) return CUDA_ERROR_INVALID_VALUE;
  const auto module = find_module(module_handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  const auto function = module->function(name);
  if (!function) return CUDA_ERROR_NOT_FOUND;
  *handle = reinterpret_cast<Handle>(function.get());
  return CUDA_SUCCESS;
}

template <class Handle>
CUresult enumerate(const void* module_handle, Handle* handles, unsigned count) {
  const auto module = find_module(module_handle);
  if (!module || !handles) return CUDA_ERROR_INVALID_VALUE;
  const auto& functions = module->functions();
  for (unsigned i = 0; i < count && i < functions.size(); ++i) handles[i] = reinterpret_cast<Handle>(functions[i].get());
  return CUDA_SUCCESS;
}

CUresult global_of(const void* module_handle, const char* name, CUdeviceptr* dptr, std::size_t* bytes) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  const auto module = find_module(module_handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr address = 0;
  std::size_t size = 0;
  if (const CUresult result = module->global(*context, name, address, size)) return result;
  if (dptr) *dptr = address;
  if (bytes) *bytes = size;
  return CUDA_SUCCESS;
}

CUresult read_file(const char* path, std::string& contents) {
  std::ifstream file(path ? path : "", std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  contents.assign(std::istreambuf_iterator<char>(file), {});
  return contents.empty() ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}

CUresult load(CUmodule* handle, const void* image) {
  Context* context = nullptr;
  if (!handle || !image) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = usable_context(context)) return result;
  if (capture_forbids()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::shared_ptr<Module> module;
  if (const CUresult result = load_module(image, context, module)) return result;
  *handle = reinterpret_cast<CUmodule>(module.get());
  return CUDA_SUCCESS;
}

CUresult load_library(CUlibrary* handle, const void* image) {
  if (!handle || !image) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Module> module;
  if (const CUresult result = load_module(image, nullptr, module)) return result;
  *handle = reinterpret_cast<CUlibrary>(module.get());
  return CUDA_SUCCESS;
}

CUresult attribute_of(const void* handle, CUfunction_attribute attribute, int* value) {
  const auto function = find_function(handle);
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  const Profile& profile = control().profile();
  const std::lock_guard lock(function->mutex);
  const auto set = function->attributes.find(attribute);
  if (set != function->attributes.end()) {
    *value = set->second;
    return CUDA_SUCCESS;
  }
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = kMaxThreads; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(function->kernel.static_shared); break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = function->kernel.registers; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = profile.capability_major * 10 + profile.capability_minor; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = 49152; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = -1; break;
    default: *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult set_attribute(const void* handle, CUfunction_attribute attribute, int value) {
  const auto function = find_function(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  const bool too_much = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
                        (value < 0 || value > control().profile().shared_per_block_optin);
  if (too_much) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(function->mutex);
  function->attributes[attribute] = value;
  return CUDA_SUCCESS;
}

CUresult parameter_of(const void* handle, std::size_t index, std::size_t* offset, std::size_t* size) {
  const auto function = find_function(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  if (!offset || index >= function->kernel.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = function->kernel.parameters[index].offset;
  if (size) *size = function->kernel.parameters[index].size;
  return CUDA_SUCCESS;
}

CUresult name_of(const void* handle, const char** name) {
  const auto function = find_function(handle);
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->kernel.name.c_str();
  return CUDA_SUCCESS;
}

int blocks_per_multiprocessor(int block_size) {
  if (block_size <= 0 || block_size > kMaxThreads) return 0;
  return std::min(control().profile().threads_per_multiprocessor / block_size, 16);
}

}  // namespace

namespace impl {

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  std::string contents;
  if (const CUresult result = read_file(path, contents)) return result;
  return load(module, contents.data());
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) { return load(module, image); }
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) { return load(module, image); }
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*, void**) {
  return load(module, image);
}

CUresult cuModuleUnload(CUmodule handle) {
  Context* context = nullptr;
  if (const CUresult result = usable_context(context)) return result;
  const auto module = find_module(handle);
  if (!module || !module->owner()) return CUDA_ERROR_INVALID_HANDLE;
  unload_module(module, *context);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return function_of(module, name, function);
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  const auto module = find_module(handle);
  if (!module || !count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(module->functions().size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule module) {
  return enumerate(module, functions, count);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule module, const char* name) {
  return global_of(module, name, dptr, bytes);
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned int, CUlibraryOption*, void**,
                           unsigned int) {
  return load_library(library, code);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**, unsigned int, CUlibraryOption*,
                               void**, unsigned int) {
  std::string contents;
  if (const CUresult result = read_file(path, contents)) return result;
  return load_library(library, contents.data());
}

CUresult cuLibraryUnload(CUlibrary handle) {
  const auto module = find_module(handle);
  if (!module || module->owner()) return CUDA_ERROR_INVALID_HANDLE;
  Context* const context = current_context();
  unload_module(module, context ? *context : primary_context(0));
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return function_of(library, name, kernel);
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
  const auto module = find_module(handle);
  if (!module || !count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(module->functions().size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int count, CUlibrary library) {
  return enumerate(library, kernels, count);
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  if (!module || !find_module(library)) return CUDA_ERROR_INVALID_HANDLE;
  *module = reinterpret_cast<CUmodule>(library);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  return global_of(library, name, dptr, bytes);
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (!function || !find_function(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  const auto function = find_function(kernel);
  if (!library || !function) return CUDA_ERROR_INVALID_HANDLE;
  *library = reinterpret_cast<CUlibrary>(function->module);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
  const auto function = find_function(handle);
  if (!module || !function) return CUDA_ERROR_INVALID_HANDLE;
  *module = reinterpret_cast<CUmodule>(function->module);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) { return name_of(kernel, name); }
CUresult cuFuncGetName(const char** name, CUfunction function) { return name_of(function, name); }

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return parameter_of(kernel, index, offset, size);
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  return parameter_of(function, index, offset, size);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  if (!state || !find_function(function)) return CUDA_ERROR_INVALID_VALUE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function) { return find_function(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return attribute_of(function, attribute, value);
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
  return attribute_of(kernel, attribute, value);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return set_attribute(function, attribute, value);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
  return set_attribute(kernel, attribute, value);
}

CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
CUresult cuKernelSetCacheConfig(CUkernel, CUfunc_cache, CUdevice) { return CUDA_SUCCESS; }

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* count, CUfunction function, int block_size, size_t,
                                                              unsigned int) {
  if (!count || !find_function(function)) return CUDA_ERROR_INVALID_VALUE;
  *count = blocks_per_multiprocessor(block_size);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, CUfunction function, int block_size, size_t shared) {
  return impl::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, block_size, shared, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function, CUoccupancyB2DSize, size_t,
                                                   int limit, unsigned int) {
  if (!grid || !block || !find_function(function)) return CUDA_ERROR_INVALID_VALUE;
  *block = limit > 0 ? std::min(limit, kMaxThreads) : kMaxThreads;
  *grid = control().profile().multiprocessors * blocks_per_multiprocessor(*block);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared_of,
                                          size_t shared, int limit) {
  return impl::cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, shared, limit, 0);
}

}  // namespace impl
}  // namespace simgpu
