/* Captures under way. */
#include "shim/context.h"
#include "shim/lock.h"
#include "shim/shim.h"

_Atomic int context_captures;

#define CAPTURES_MAX 256
static struct {
    struct lock lock;
    int count;
    CUstream streams[CAPTURES_MAX];
    CUcontext contexts[CAPTURES_MAX];
} captures = {.lock = LOCK_INITIALIZER};

void context_capture_began(CUstream stream, CUcontext context)
{
    lock_acquire(&captures.lock);
    if (captures.count < CAPTURES_MAX) {
        captures.streams[captures.count] = stream;
        captures.contexts[captures.count++] = context;
    }
    lock_release(&captures.lock);
}

static void capture_drop(int i)
{
    captures.streams[i] = captures.streams[--captures.count];
    captures.contexts[i] = captures.contexts[captures.count];
    atomic_fetch_sub(&context_captures, 1);
}

void context_capture_ended(CUstream stream)
{
    lock_acquire(&captures.lock);
    for (int i = 0; i < captures.count; i++) {
        if (captures.streams[i] != stream) continue;
        capture_drop(i);
        break;
    }
    lock_release(&captures.lock);
}

void context_captures_end(CUcontext context)
{
    lock_acquire(&captures.lock);
    for (int i = captures.count - 1; i >= 0; i--)
        if (captures.contexts[i] == context) capture_drop(i);
    lock_release(&captures.lock);
}

bool context_stream_capturing(CUstream stream)
{
    CUstreamCaptureStatus status;
    /* The legacy stream cannot capture, and asking about it while another stream does would invalidate that capture. */
    if (stream == CU_STREAM_LEGACY || !shim.real.cuStreamIsCapturing) return false;
    return shim.real.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}
