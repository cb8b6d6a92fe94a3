/* Fills: asynchronous on device memory in every form, waiting in the plain form on memory that the host shares. */
#include "memory.h"
#include "fill.h"

CUresult fill_canonical(struct fill *fill)
{
    struct location location;
    if (fill->address % fill->element_bytes || (fill->height > 1 && fill->pitch % fill->element_bytes))
        return CUDA_ERROR_INVALID_VALUE;
    location_of(fill->address, &location);
    size_t bytes = (fill->height - 1) * fill->pitch + fill->width * fill->element_bytes;
    if (fill->height > 1 && fill->pitch < fill->width * fill->element_bytes) return CUDA_ERROR_INVALID_VALUE;
    if (!location_holds(&location, fill->address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    fill->registration = location.registration;
    return CUDA_SUCCESS;
}

static CUresult filled(CUdeviceptr address, size_t pitch, unsigned value, size_t width, size_t height,
                       unsigned element_bytes, CUstream handle, bool per_thread, bool async)
{
    struct work work = {.kind = WORK_FILL, .fill = {address, pitch, width, height, element_bytes, value, 0}};
    CUstream stream;
    sim_lock();
    CUresult result = stream_resolve(handle, per_thread, &stream);
    bool nothing = !width || !height;
    if (!result && !nothing) result = fill_canonical(&work.fill);
    if (!result && !nothing && !async && stream->capture) result = capture_refuses_wait(stream);
    if (!result && !nothing) {
        struct allocation *allocation = allocation_at(address);
        if (!async && (work.fill.registration || (allocation && allocation->sync_operations))) {
            result = capture_refuses_legacy(stream);
            if (!result) result = stream_run_here(stream, &work);
        } else {
            result = stream_accept(stream, &work);
        }
    }
    sim_unlock();
    return result;
}

#define LINEAR(symbol, async_symbol, type, bytes)                                                                      \
    CUresult symbol(CUdeviceptr address, type value, size_t count)                                                     \
    {                                                                                                                  \
        SIM_ENTER(symbol);                                                                                             \
        return filled(address, count * bytes, value, count, 1, bytes, NULL, false, false);                             \
    }                                                                                                                  \
    CUresult symbol##_ptds(CUdeviceptr address, type value, size_t count)                                              \
    {                                                                                                                  \
        SIM_ENTER(symbol##_ptds);                                                                                      \
        return filled(address, count * bytes, value, count, 1, bytes, NULL, true, false);                              \
    }                                                                                                                  \
    CUresult async_symbol(CUdeviceptr address, type value, size_t count, CUstream stream)                              \
    {                                                                                                                  \
        SIM_ENTER(async_symbol);                                                                                       \
        return filled(address, count * bytes, value, count, 1, bytes, stream, false, true);                            \
    }                                                                                                                  \
    CUresult async_symbol##_ptsz(CUdeviceptr address, type value, size_t count, CUstream stream)                       \
    {                                                                                                                  \
        SIM_ENTER(async_symbol##_ptsz);                                                                                \
        return filled(address, count * bytes, value, count, 1, bytes, stream, true, true);                             \
    }

LINEAR(cuMemsetD8_v2, cuMemsetD8Async, unsigned char, 1)
LINEAR(cuMemsetD16_v2, cuMemsetD16Async, unsigned short, 2)
LINEAR(cuMemsetD32_v2, cuMemsetD32Async, unsigned, 4)

#define PITCHED(symbol, async_symbol, type, bytes)                                                                     \
    CUresult symbol(CUdeviceptr address, size_t pitch, type value, size_t width, size_t height)                        \
    {                                                                                                                  \
        SIM_ENTER(symbol);                                                                                             \
        return filled(address, pitch, value, width, height, bytes, NULL, false, false);                                \
    }                                                                                                                  \
    CUresult symbol##_ptds(CUdeviceptr address, size_t pitch, type value, size_t width, size_t height)                 \
    {                                                                                                                  \
        SIM_ENTER(symbol##_ptds);                                                                                      \
        return filled(address, pitch, value, width, height, bytes, NULL, true, false);                                 \
    }                                                                                                                  \
    CUresult async_symbol(CUdeviceptr address, size_t pitch, type value, size_t width, size_t height, CUstream stream) \
    {                                                                                                                  \
        SIM_ENTER(async_symbol);                                                                                       \
        return filled(address, pitch, value, width, height, bytes, stream, false, true);                               \
    }                                                                                                                  \
    CUresult async_symbol##_ptsz(CUdeviceptr address, size_t pitch, type value, size_t width, size_t height,           \
                                 CUstream stream)                                                                      \
    {                                                                                                                  \
        SIM_ENTER(async_symbol##_ptsz);                                                                                \
        return filled(address, pitch, value, width, height, bytes, stream, true, true);                                \
    }

PITCHED(cuMemsetD2D8_v2, cuMemsetD2D8Async, unsigned char, 1)
PITCHED(cuMemsetD2D16_v2, cuMemsetD2D16Async, unsigned short, 2)
PITCHED(cuMemsetD2D32_v2, cuMemsetD2D32Async, unsigned, 4)
