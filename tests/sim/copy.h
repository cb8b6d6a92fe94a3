/* From an entry point's arguments to a copy that a stream does. */
#ifndef SIM_COPY_H
#define SIM_COPY_H

#include "memory.h"

/* What the caller says about an end. UNIFIED: the address tells. */
enum claim { CLAIM_HOST, CLAIM_DEVICE, CLAIM_UNIFIED, CLAIM_ARRAY };
struct claimed_end {
    enum claim claim;
    uint64_t address;
    size_t pitch, slice;
    size_t slack; /* of an array: bytes that may be touched from address on */
};
struct copy_request {
    struct claimed_end to, from;
    size_t width, height, depth;
    CUstream stream;
    bool per_thread, async, batch;
};
/* Does what the driver does with it: waits, returns at once, stages or refuses by the rules of the ends. */
CUresult copy_submit(const struct copy_request *request);
/* Locked: only the checks and the canonical form, for graph nodes. */
CUresult copy_canonical(const struct copy_request *request, struct copy *copy);

/* array.c */
struct CUarray_st {
    uint32_t magic;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    size_t element_bytes, pitch, slice, bytes;
    char *data;
};
bool array_valid(CUarray array);

/* copy3d.c */
CUresult request_from_2d(const CUDA_MEMCPY2D *in, struct copy_request *out);
CUresult request_from_3d(const CUDA_MEMCPY3D *in, struct copy_request *out);

#endif
