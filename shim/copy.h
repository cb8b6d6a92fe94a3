/* Copies between device buffers and host memory: one description for every form the driver API has. */
#ifndef SHIM_COPY_H
#define SHIM_COPY_H
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct context;
struct window;

enum copy_direction { COPY_H2D, COPY_D2H };

/* depth slices of height rows of width bytes; 1D: height = depth = 1 and pitches unused. */
struct copy_request {
    enum copy_direction direction;
    CUdeviceptr device;
    void *host; /* read for H2D, written for D2H */
    size_t width, height, depth;
    size_t device_pitch, host_pitch; /* bytes from row to row */
    size_t device_slice, host_slice; /* bytes from slice to slice */
    CUstream stream;                 /* CU_STREAM_LEGACY or CU_STREAM_PER_THREAD for the forms without one */
    bool async;                      /* an ...Async form */
    struct context *context;         /* the current context, known to the shim; NULL until copy_begin found it */
    struct window *window;           /* copy_begin: of the device side; NULL for memory of the driver */
    uint64_t started_ns;             /* copy_begin: when it began, if anybody wants to know; else 0 */
};

static inline struct copy_request copy_linear(enum copy_direction direction, CUdeviceptr device, const void *host,
                                              size_t bytes, CUstream stream, bool async)
{
    return (struct copy_request){.direction = direction,
                                 .device = device,
                                 .host = (void *)host,
                                 .width = bytes,
                                 .height = 1,
                                 .depth = 1,
                                 .stream = stream,
                                 .async = async};
}

/* Does the driver's form return only after the GPU work before it? (conformance: order_legacy, order_threads) */
static inline bool copy_waits(const struct copy_request *request)
{
    return !request->async && !(request->direction == COPY_H2D && request->stream == CU_STREAM_PER_THREAD);
}

/* Every copy hook goes: `if (copy_begin(&request, &result)) return result; result = forward(...); copy_end(&request,
 * result);` True: the copy is done (or failed) as the driver would have done it, and accounted for. False: forward it,
 * then call copy_end; in between the submission gate is held if the device side lies in a window. */
bool copy_begin(struct copy_request *request, CUresult *result);
void copy_end(struct copy_request *request, CUresult result);

/* What an address is to a copy whose form does not say. */
enum copy_side { SIDE_WINDOW, SIDE_DEVICE, SIDE_PINNED, SIDE_PAGEABLE, SIDE_OTHER /* managed, or unknown to us */ };
enum copy_side copy_side(uintptr_t address);

/* Device to device where at least one side may be a window on the host. The same protocol. Forms that block on host
 * memory are replaced by ones that do not: true says that the copy went out in another form and *result is its answer.
 */
struct copy_between {
    CUdeviceptr to, from;
    size_t bytes;
    CUstream stream;
    bool async;
    bool entered;    /* the gate */
    bool wait_after; /* one side has CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
};
bool copy_between_begin(struct copy_between *between, CUresult *result);
CUresult copy_between_end(struct copy_between *between, CUresult result);

/* One byte past the last that a pitched side touches, as an offset; SIZE_MAX when that does not fit. */
size_t copy_extent(size_t width, size_t height, size_t depth, size_t pitch, size_t slice);

/* The stream is being captured and the copy or memset becomes a node: the windows that it names keep their backing from
 * now on. Outside the gate. */
void copy_freeze_captured(CUstream stream, CUdeviceptr a, CUdeviceptr b);

/* Does the range begin in a window without lying in one live buffer? The driver checks the bounds of each allocation:
 * INVALID_VALUE. */
bool copy_out_of_bounds(uintptr_t address, size_t bytes);

/* A call that names device addresses and is forwarded as it is: holds the gate while any of them lies in a window. */
bool copy_gate_enter(CUdeviceptr a, CUdeviceptr b);
void copy_gate_leave(bool entered);
#endif
