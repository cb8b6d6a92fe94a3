/*
 * The asynchronous copy kernel: what libzcshim launches when a copy must be ordered in a stream and the driver's own
 * copy would block. One thread moves one piece: 16 bytes where every address and stride allows it, else 8, 4 or 1; what
 * is left of a row (less than one piece) goes out in the widest aligned pieces, so that an aligned 4 or 8 byte word is
 * always stored in one access and a poller never sees half of it.
 *
 * Source and destination may each be device memory or mapped host memory; they must not overlap. Any grid is correct;
 * one thread for each 16 bytes is the fastest (256 threads a block, at most a few dozen blocks: the bus is full by
 * then).
 */
#ifndef ZC_COPY_KERNELS_CUH
#define ZC_COPY_KERNELS_CUH

struct alignas(16) zc_copy_quad {
    unsigned int word[4];
};

#define ZC_COPY_TAIL_PIECES 5 /* one of 8 bytes, one of 4, three of 1 */

__device__ static inline void zc_copy_piece(char *dst, const char *src, unsigned long long width, unsigned int unit,
                                            unsigned long long full, unsigned long long piece)
{
    if (piece < full) {
        unsigned long long at = piece * unit;
        if (unit == 16)
            *(zc_copy_quad *)(dst + at) = *(const zc_copy_quad *)(src + at);
        else if (unit == 8)
            *(unsigned long long *)(dst + at) = *(const unsigned long long *)(src + at);
        else if (unit == 4)
            *(unsigned int *)(dst + at) = *(const unsigned int *)(src + at);
        else
            dst[at] = src[at];
        return;
    }
    unsigned long long at = full * unit;
    unsigned int left = (unsigned int)(width - at);
    unsigned int tail = (unsigned int)(piece - full);
    if (tail == 0) {
        if (left & 8) *(unsigned long long *)(dst + at) = *(const unsigned long long *)(src + at);
    } else if (tail == 1) {
        at += left & 8;
        if (left & 4) *(unsigned int *)(dst + at) = *(const unsigned int *)(src + at);
    } else if (tail - 2 < (left & 3)) {
        at += (left & 12) + (tail - 2);
        dst[at] = src[at];
    }
}

/* Copies depth x height x width bytes between pitched regions; any alignment; grid-stride. */
extern "C" __global__ void zc_copy(char *dst, const char *src, unsigned long long width, unsigned long long height,
                                   unsigned long long depth, unsigned long long dst_pitch, unsigned long long src_pitch,
                                   unsigned long long dst_slice, unsigned long long src_slice)
{
    unsigned long long rows = height * depth;
    unsigned long long bits = (unsigned long long)dst | (unsigned long long)src;
    if (height > 1) bits |= dst_pitch | src_pitch;
    if (depth > 1) bits |= dst_slice | src_slice;
    unsigned int unit = !(bits & 15) ? 16 : !(bits & 7) ? 8 : !(bits & 3) ? 4 : 1;
    unsigned long long full = width / unit;
    unsigned long long pieces = full + (full * unit == width ? 0 : ZC_COPY_TAIL_PIECES);
    unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;

    if (rows == 1) {
        for (unsigned long long i = first; i < pieces; i += step) zc_copy_piece(dst, src, width, unit, full, i);
        return;
    }
    for (unsigned long long i = first; i < pieces * rows; i += step) {
        unsigned long long row = i / pieces, slice = row / height, line = row % height;
        zc_copy_piece(dst + slice * dst_slice + line * dst_pitch, src + slice * src_slice + line * src_pitch, width,
                      unit, full, i % pieces);
    }
}

#endif
