// Streams, events, kernels, graphs, other processes.
#include <cuda_runtime.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/gpu/runtime_calls.hpp"
#include "tests/gpu/runtime_calls_kernels.cuh"

extern char** environ;

namespace {

__device__ float g_number[4];
__managed__ int g_managed;

void CUDART_CB nothing(void*) {}
void CUDART_CB no_callback(cudaStream_t, cudaError_t, void*) {}

void call_capture(Scene& scene) {
  Report& report = scene.report;
  cudaStream_t stream = scene.stream;
  cudaStreamCaptureStatus status{};
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr, given = nullptr;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  CALL(report, cudaThreadExchangeStreamCaptureMode(&mode));
  cudaThreadExchangeStreamCaptureMode(&mode);
  CALL(report, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  CASE(report, "cudaMemsetAsync:captured", cudaMemsetAsync(scene.block, 1, 4096, stream));
  CALL(report, cudaStreamIsCapturing(stream, &status));
  CALL(report, cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, &edges, &count));
  CALL(report, cudaStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0, cudaStreamAddCaptureDependencies));
  CALL(report, cudaStreamEndCapture(stream, &graph));
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (cudaGraphCreate(&given, 0) == cudaSuccess) {
    CALL(report, cudaStreamBeginCaptureToGraph(stream, given, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
    cudaStreamEndCapture(stream, &graph);
    cudaGraphDestroy(given);
  }
  cudaGetLastError();
}

cudaKernelNodeParams kernel_node(void** arguments) {
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(&add);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(32);
  kernel.kernelParams = arguments;
  return kernel;
}

}  // namespace

void call_streams(Scene& scene) {
  Report& report = scene.report;
  cudaStream_t stream = scene.stream, other = nullptr;
  cudaEvent_t event = nullptr, second = nullptr;
  unsigned flags = 0;
  int number = 0;
  unsigned long long id = 0;
  float milliseconds = 0;
  CALL(report, cudaStreamCreate(&other));
  cudaStreamDestroy(other);
  CALL(report, cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, 0));
  CALL(report, cudaStreamGetFlags(stream, &flags));
  CALL(report, cudaStreamGetPriority(stream, &number));
  CALL(report, cudaStreamGetId(stream, &id));
  CALL(report, cudaStreamGetDevice(stream, &number));
  cudaLaunchAttributeValue value{};
  CALL(report, cudaStreamGetAttribute(stream, cudaLaunchAttributeSynchronizationPolicy, &value));
  CALL(report, cudaStreamSetAttribute(stream, cudaLaunchAttributeSynchronizationPolicy, &value));
  CALL(report, cudaStreamCopyAttributes(other, stream));
  CALL(report, cudaEventCreate(&event));
  CALL(report, cudaEventCreateWithFlags(&second, cudaEventDefault));
  CALL(report, cudaEventRecord(event, stream));
  CALL(report, cudaEventRecordWithFlags(second, stream, cudaEventRecordDefault));
  CALL(report, cudaStreamWaitEvent(other, event, 0));
  CALL(report, cudaEventSynchronize(second));
  CALL(report, cudaEventQuery(event));
  CALL(report, cudaEventElapsedTime(&milliseconds, event, second));
  CALL(report, cudaEventDestroy(event));
  cudaEventDestroy(second);
  CALL(report, cudaLaunchHostFunc(stream, &nothing, nullptr));
  CALL(report, cudaStreamAddCallback(stream, &no_callback, nullptr, 0));
  CALL(report, cudaStreamSynchronize(stream));
  CALL(report, cudaStreamQuery(stream));
  cudaStreamDestroy(other);
  call_capture(scene);
}

void call_kernels(Scene& scene) {
  Report& report = scene.report;
  cudaStream_t stream = scene.stream;
  const auto* symbol = reinterpret_cast<const void*>(&add);
  int n = 32, blocks = 0;
  float one = 1.0F;
  auto* x = static_cast<float*>(scene.block);
  void* arguments[] = {&n, &one, &x};
  CASE(report, "first:cudaLaunchKernel", cudaLaunchKernel(symbol, dim3(1), dim3(32), arguments, 0, stream));
  CALL(report, cudaLaunchKernel(symbol, dim3(1), dim3(32), arguments, 0, stream));
  report.step("launch:syntax", [&] {
    add<<<1, 32, 0, stream>>>(n, one, x);
    return cudaPeekAtLastError();
  });
  CALL(report, cudaLaunchCooperativeKernel(symbol, dim3(1), dim3(32), arguments, 0, stream));
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.stream = stream;
  CALL(report, cudaLaunchKernelExC(&config, symbol, arguments));
  cudaStreamSynchronize(stream);

  cudaFuncAttributes attributes{};
  const char* name = nullptr;
  size_t offset = 0, size = 0;
  cudaFunction_t function = nullptr;
  CALL(report, cudaFuncGetAttributes(&attributes, symbol));
  CALL(report, cudaFuncSetAttribute(symbol, cudaFuncAttributePreferredSharedMemoryCarveout, 0));
  CALL(report, cudaFuncSetCacheConfig(symbol, cudaFuncCachePreferNone));
  CALL(report, cudaFuncGetName(&name, symbol));
  CALL(report, cudaFuncGetParamInfo(symbol, 0, &offset, &size));
  CALL(report, cudaGetFuncBySymbol(&function, symbol));
  CALL(report, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, symbol, 32, 0, 0));
  CALL(report, cudaOccupancyAvailableDynamicSMemPerBlock(&size, symbol, 1, 32));

  void* address = nullptr;
  CALL(report, cudaGetSymbolAddress(&address, g_number));
  CALL(report, cudaMemcpyToSymbol(g_number, scene.pageable, sizeof(g_number)));
  CALL(report, cudaMemcpyFromSymbol(scene.pageable, g_number, sizeof(g_number)));
  CASE(report, "cudaGetSymbolAddress:managed", cudaGetSymbolAddress(&address, g_managed));

  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  unsigned kernels = 0;
  CALL(report, cudaLibraryLoadData(&library, gpu_run_image, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CALL(report, cudaLibraryGetKernelCount(&kernels, library));
  CALL(report, cudaLibraryGetKernel(&kernel, library, "gpu_run_nothing"));
  CALL(report, cudaLibraryGetGlobal(&address, &size, library, "gpu_run_number"));
  CALL(report, cudaLibraryUnload(library));
}

void call_graphs(Scene& scene) {
  Report& report = scene.report;
  cudaStream_t stream = scene.stream;
  cudaGraph_t graph = nullptr, child = nullptr, clone = nullptr;
  cudaGraphNode_t kernel = nullptr, copy = nullptr, fill = nullptr, empty = nullptr, node = nullptr;
  CALL(report, cudaGraphCreate(&graph, 0));
  int n = 32;
  float one = 1.0F;
  auto* x = static_cast<float*>(scene.block);
  void* arguments[] = {&n, &one, &x};
  cudaKernelNodeParams kernel_parameters = kernel_node(arguments);
  CALL(report, cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &kernel_parameters));
  CALL(report, cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, scene.second, scene.pinned, 4096, cudaMemcpyHostToDevice));
  cudaMemcpy3DParms copy_parameters{};
  copy_parameters.srcPtr = make_cudaPitchedPtr(scene.pinned, 4096, 4096, 1);
  copy_parameters.dstPtr = make_cudaPitchedPtr(scene.second, 4096, 4096, 1);
  copy_parameters.extent = make_cudaExtent(4096, 1, 1);
  copy_parameters.kind = cudaMemcpyHostToDevice;
  CALL(report, cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy_parameters));
  cudaMemsetParams fill_parameters{};
  fill_parameters.dst = scene.second;
  fill_parameters.elementSize = 1;
  fill_parameters.width = 4096;
  fill_parameters.height = 1;
  CALL(report, cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &fill_parameters));
  CALL(report, cudaGraphAddEmptyNode(&empty, graph, nullptr, 0));
  cudaHostNodeParams host{};
  host.fn = &nothing;
  CALL(report, cudaGraphAddHostNode(&node, graph, nullptr, 0, &host));
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  CALL(report, cudaGraphAddEventRecordNode(&node, graph, nullptr, 0, event));
  CALL(report, cudaGraphAddEventWaitNode(&node, graph, nullptr, 0, event));
  if (cudaGraphCreate(&child, 0) == cudaSuccess) CALL(report, cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
  CALL(report, cudaGraphAddDependencies(graph, &kernel, &empty, nullptr, 1));
  size_t count = 0;
  cudaGraphNodeType type{};
  CALL(report, cudaGraphGetNodes(graph, nullptr, &count));
  CALL(report, cudaGraphGetRootNodes(graph, nullptr, &count));
  CALL(report, cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  CALL(report, cudaGraphNodeGetType(kernel, &type));
  CALL(report, cudaGraphNodeGetDependencies(empty, nullptr, nullptr, &count));
  CALL(report, cudaGraphDebugDotPrint(graph, "/dev/null", 0));
  CALL(report, cudaGraphClone(&clone, graph));

  cudaGraphExec_t exec = nullptr, second = nullptr;
  unsigned long long flags = 0;
  unsigned enabled = 0;
  cudaGraphInstantiateParams how{};
  cudaGraphExecUpdateResultInfo updated{};
  CALL(report, cudaGraphInstantiate(&exec, graph, 0));
  CALL(report, cudaGraphInstantiateWithFlags(&second, graph, 0));
  if (second != nullptr) cudaGraphExecDestroy(second);
  CALL(report, cudaGraphInstantiateWithParams(&second, graph, &how));
  if (second != nullptr) cudaGraphExecDestroy(second);
  CALL(report, cudaGraphExecGetFlags(exec, &flags));
  CALL(report, cudaGraphExecKernelNodeSetParams(exec, kernel, &kernel_parameters));
  CALL(report, cudaGraphExecMemcpyNodeSetParams1D(exec, copy, scene.second, scene.pinned, 4096, cudaMemcpyHostToDevice));
  CALL(report, cudaGraphNodeSetEnabled(exec, kernel, 1));
  CALL(report, cudaGraphNodeGetEnabled(exec, kernel, &enabled));
  CALL(report, cudaGraphExecUpdate(exec, graph, &updated));
  CALL(report, cudaGraphUpload(exec, stream));
  CALL(report, cudaGraphLaunch(exec, stream));
  cudaStreamSynchronize(stream);
  CALL(report, cudaGraphExecDestroy(exec));
  CALL(report, cudaGraphDestroyNode(empty));

  // Memory nodes cannot be cloned or instantiated twice: in a graph of their own.
  cudaGraph_t owner = nullptr;
  cudaMemAllocNodeParams allocation{};
  allocation.poolProps.allocType = cudaMemAllocationTypePinned;
  allocation.poolProps.location.type = cudaMemLocationTypeDevice;
  allocation.bytesize = 4096;
  cudaGraphCreate(&owner, 0);
  CALL(report, cudaGraphAddMemAllocNode(&node, owner, nullptr, 0, &allocation));
  CALL(report, cudaGraphAddMemFreeNode(&kernel, owner, &node, 1, allocation.dptr));
  CALL(report, cudaDeviceGraphMemTrim(0));
  cudaGraphDestroy(owner);
  CALL(report, cudaGraphDestroy(graph));
  cudaEventDestroy(event);
  cudaGetLastError();
}

// ---- Other processes
// ----------------------------------------------------------------------------------------------------------
namespace {

struct Handles {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
};

}  // namespace

int serve_other_process() {
  Handles handles{};
  void* block = nullptr;
  cudaEvent_t event = nullptr;
  if (cudaMalloc(&block, kBlock) != cudaSuccess) return 2;
  cudaIpcGetMemHandle(&handles.memory, block);
  if (cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming) == cudaSuccess)
    cudaIpcGetEventHandle(&handles.event, event);
  if (write(STDOUT_FILENO, &handles, sizeof(handles)) != sizeof(handles)) return 2;
  char end = 0;
  return read(STDIN_FILENO, &end, 1) == 0 ? 0 : 2;  // until the other one has done
}

void call_other_processes(Scene& scene, const char* program) {
  Report& report = scene.report;
  cudaIpcMemHandle_t own{};
  cudaIpcEventHandle_t own_event{};
  cudaEvent_t event = nullptr, opened_event = nullptr;
  CALL(report, cudaIpcGetMemHandle(&own, scene.block));
  cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming);
  CALL(report, cudaIpcGetEventHandle(&own_event, event));

  int to_child[2], to_us[2];
  if (pipe(to_child) != 0 || pipe(to_us) != 0) return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, to_us[1], STDOUT_FILENO);
  for (const int fd : {to_child[0], to_child[1], to_us[0], to_us[1]}) posix_spawn_file_actions_addclose(&actions, fd);
  char serve[] = "--serve";
  char* arguments[] = {const_cast<char*>(program), serve, nullptr};
  pid_t child = -1;
  const int failed = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environ);
  close(to_child[0]);
  close(to_us[1]);
  Handles handles{};
  void* opened = nullptr;
  if (failed == 0 && read(to_us[0], &handles, sizeof(handles)) == sizeof(handles)) {
    CALL(report, cudaIpcOpenMemHandle(&opened, handles.memory, cudaIpcMemLazyEnablePeerAccess));
    CALL(report, cudaIpcOpenEventHandle(&opened_event, handles.event));
    CALL(report, cudaIpcCloseMemHandle(opened));
  }
  close(to_child[1]);
  close(to_us[0]);
  posix_spawn_file_actions_destroy(&actions);
  if (failed == 0) waitpid(child, nullptr, 0);
  if (event != nullptr) cudaEventDestroy(event);
  cudaGetLastError();
}
