// Streams, events, host functions, and capture.
#include <memory>
#include <new>

#include "tools/simgpu/runtime/calls.hpp"

namespace simgpu::runtime {
namespace {

// The driver's callback has another type of status than the runtime's: one small object carries the program's
// function.
struct Callback {
  cudaStreamCallback_t function;
  void* argument;
};

void CUDA_CB run_callback(CUstream stream, CUresult status, void* data) {
  const std::unique_ptr<Callback> callback(static_cast<Callback*>(data));
  callback->function(stream, translate(status), callback->argument);
}

}  // namespace

SIMGPU_API cudaError_t cudaStreamCreate(cudaStream_t* stream) { return direct<row::cudaStreamCreate>(stream, 0U); }
SIMGPU_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return direct<row::cudaStreamCreateWithFlags>(stream, flags);
}
SIMGPU_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  return direct<row::cudaStreamCreateWithPriority>(stream, flags, priority);
}
SIMGPU_API cudaError_t cudaStreamDestroy(cudaStream_t stream) { return direct<row::cudaStreamDestroy>(stream); }

SIMGPU_BOTH_FORMS(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), (stream)) {
  return direct<row::cudaStreamSynchronize, form>(stream);
}
SIMGPU_BOTH_FORMS(cudaStreamQuery, _ptsz, (cudaStream_t stream), (stream)) {
  return direct<row::cudaStreamQuery, form>(stream);
}
SIMGPU_BOTH_FORMS(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
                  (stream, event, flags)) {
  return direct<row::cudaStreamWaitEvent, form>(stream, event, flags);
}
SIMGPU_BOTH_FORMS(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned int* flags), (stream, flags)) {
  return direct<row::cudaStreamGetFlags, form>(stream, flags);
}
SIMGPU_BOTH_FORMS(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int* priority), (stream, priority)) {
  return direct<row::cudaStreamGetPriority, form>(stream, priority);
}
SIMGPU_BOTH_FORMS(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long* id), (stream, id)) {
  return direct<row::cudaStreamGetId, form>(stream, id);
}
SIMGPU_BOTH_FORMS(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int* device), (stream, device)) {
  return direct<row::cudaStreamGetDevice, form>(stream, device);
}
SIMGPU_BOTH_FORMS(cudaStreamCopyAttributes, _ptsz, (cudaStream_t to, cudaStream_t from), (to, from)) {
  return direct<row::cudaStreamCopyAttributes, form>(to, from);
}
SIMGPU_BOTH_FORMS(cudaStreamGetAttribute, _ptsz,
                  (cudaStream_t stream, cudaLaunchAttributeID attribute, cudaLaunchAttributeValue* value),
                  (stream, attribute, value)) {
  return direct<row::cudaStreamGetAttribute, form>(stream, as<CUlaunchAttributeID>(attribute),
                                                   as<CUlaunchAttributeValue*>(value));
}
SIMGPU_BOTH_FORMS(cudaStreamSetAttribute, _ptsz,
                  (cudaStream_t stream, cudaLaunchAttributeID attribute, const cudaLaunchAttributeValue* value),
                  (stream, attribute, value)) {
  return direct<row::cudaStreamSetAttribute, form>(stream, as<CUlaunchAttributeID>(attribute),
                                                   as<const CUlaunchAttributeValue*>(value));
}

SIMGPU_BOTH_FORMS(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void* argument),
                  (stream, function, argument)) {
  return direct<row::cudaLaunchHostFunc, form>(stream, function, argument);
}

SIMGPU_BOTH_FORMS(cudaStreamAddCallback, _ptsz,
                  (cudaStream_t stream, cudaStreamCallback_t function, void* argument, unsigned int flags),
                  (stream, function, argument, flags)) {
  if (function == nullptr) return finish(cudaErrorInvalidValue);
  auto* callback = new (std::nothrow) Callback{function, argument};
  if (callback == nullptr) return finish(cudaErrorMemoryAllocation);
  const cudaError_t error = direct<row::cudaStreamAddCallback, form>(stream, run_callback, static_cast<void*>(callback), flags);
  if (error != cudaSuccess) delete callback;
  return error;
}

SIMGPU_API cudaError_t cudaEventCreate(cudaEvent_t* event) { return direct<row::cudaEventCreate>(event, 0U); }
SIMGPU_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return direct<row::cudaEventCreateWithFlags>(event, flags);
}
SIMGPU_API cudaError_t cudaEventDestroy(cudaEvent_t event) { return direct<row::cudaEventDestroy>(event); }
SIMGPU_API cudaError_t cudaEventQuery(cudaEvent_t event) { return direct<row::cudaEventQuery>(event); }
SIMGPU_API cudaError_t cudaEventSynchronize(cudaEvent_t event) { return direct<row::cudaEventSynchronize>(event); }
SIMGPU_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return direct<row::cudaEventElapsedTime>(milliseconds, start, end);
}
SIMGPU_BOTH_FORMS(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), (event, stream)) {
  return direct<row::cudaEventRecord, form>(event, stream);
}
SIMGPU_BOTH_FORMS(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
                  (event, stream, flags)) {
  return direct<row::cudaEventRecordWithFlags, form>(event, stream, flags);
}

SIMGPU_BOTH_FORMS(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, cudaStreamCaptureMode mode), (stream, mode)) {
  return direct<row::cudaStreamBeginCapture, form>(stream, as<CUstreamCaptureMode>(mode));
}
SIMGPU_BOTH_FORMS(cudaStreamBeginCaptureToGraph, _ptsz,
                  (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
                   size_t count, cudaStreamCaptureMode mode),
                  (stream, graph, dependencies, edges, count, mode)) {
  return direct<row::cudaStreamBeginCaptureToGraph, form>(stream, graph, dependencies, as<const CUgraphEdgeData*>(edges), count,
                                                          as<CUstreamCaptureMode>(mode));
}
SIMGPU_BOTH_FORMS(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t* graph), (stream, graph)) {
  return direct<row::cudaStreamEndCapture, form>(stream, graph);
}
SIMGPU_BOTH_FORMS(cudaStreamIsCapturing, _ptsz, (cudaStream_t stream, cudaStreamCaptureStatus* status), (stream, status)) {
  return direct<row::cudaStreamIsCapturing, form>(stream, as<CUstreamCaptureStatus*>(status));
}
SIMGPU_BOTH_FORMS(cudaStreamGetCaptureInfo, _ptsz,
                  (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                   const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges, size_t* count),
                  (stream, status, id, graph, dependencies, edges, count)) {
  return direct<row::cudaStreamGetCaptureInfo, form>(stream, as<CUstreamCaptureStatus*>(status), as<cuuint64_t*>(id), graph,
                                                     dependencies, as<const CUgraphEdgeData**>(edges), count);
}
SIMGPU_BOTH_FORMS(cudaStreamUpdateCaptureDependencies, _ptsz,
                  (cudaStream_t stream, cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges, size_t count,
                   unsigned int flags),
                  (stream, dependencies, edges, count, flags)) {
  return direct<row::cudaStreamUpdateCaptureDependencies, form>(stream, dependencies, as<const CUgraphEdgeData*>(edges), count,
                                                                flags);
}
SIMGPU_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return direct<row::cudaThreadExchangeStreamCaptureMode>(as<CUstreamCaptureMode*>(mode));
}

}  // namespace simgpu::runtime
