/* Copies between device buffers and host memory: one description for every form the driver API has. */
#ifndef SHIM_COPY_H
#define SHIM_COPY_H
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct context;

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
    struct context *context;         /* the current context, known to the shim */
};
#endif
