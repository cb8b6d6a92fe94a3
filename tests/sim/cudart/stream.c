/* Streams, events and capture. */
#include "cudart.h"

cudaError_t cudaStreamCreate(cudaStream_t *stream) { CALL(0, cuStreamCreate, stream, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) { CALL(0, cuStreamCreate, stream, flags); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    CALL(0, cuStreamCreateWithPriority, stream, flags, priority);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { CALL(0, cuStreamDestroy, stream); }

cudaError_t cudaEventCreate(cudaEvent_t *event) { CALL(0, cuEventCreate, event, 0); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) { CALL(0, cuEventCreate, event, flags); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { CALL(0, cuEventDestroy, event); }
cudaError_t cudaEventQuery(cudaEvent_t event) { CALL(0, cuEventQuery, event); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { CALL(0, cuEventSynchronize, event); }
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    CALL(0, cuEventElapsedTime, milliseconds, start, end);
}

/* Each function and its twin for per-thread default streams. */
#define TWINS(name, parameters, function, ...)                                                                         \
    cudaError_t name parameters { CALL(0, function, __VA_ARGS__); }                                                    \
    EXPORT cudaError_t name##_ptsz parameters { CALL(1, function, __VA_ARGS__); }

TWINS(cudaStreamQuery, (cudaStream_t stream), cuStreamQuery, stream)
TWINS(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize, stream)
TWINS(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags), cuStreamWaitEvent, stream, event,
      flags)
TWINS(cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags), cuStreamGetFlags, stream, flags)
TWINS(cudaStreamGetPriority, (cudaStream_t stream, int *priority), cuStreamGetPriority, stream, priority)
TWINS(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), cuStreamGetId, stream, id)
TWINS(cudaStreamAddCallback, (cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags),
      cuStreamAddCallback, stream, (CUstreamCallback)function, data, flags)
TWINS(cudaStreamAttachMemAsync, (cudaStream_t stream, void *pointer, size_t bytes, unsigned flags),
      cuStreamAttachMemAsync, stream, (CUdeviceptr)pointer, bytes, flags)
TWINS(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data), cuLaunchHostFunc, stream, function,
      data)
TWINS(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord, event, stream)
TWINS(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags), cuEventRecordWithFlags, event,
      stream, flags)
TWINS(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode), cuStreamBeginCapture, stream,
      (CUstreamCaptureMode)mode)
TWINS(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), cuStreamEndCapture, stream, graph)
TWINS(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status), cuStreamIsCapturing, stream,
      (CUstreamCaptureStatus *)status)
TWINS(cudaStreamGetCaptureInfo,
      (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
       const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges, size_t *count),
      cuStreamGetCaptureInfo, stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id, graph, dependencies,
      (const CUgraphEdgeData **)edges, count)
TWINS(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphLaunch, exec, stream)
TWINS(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphUpload, exec, stream)

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    CALL(0, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)mode);
}
