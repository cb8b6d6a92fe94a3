/* Copies and fills. */
#include "cudart.h"

static cudaError_t copied(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, int per_thread)
{
    cudaError_t error = context_ensure();
    if (!error && (unsigned)kind > cudaMemcpyDefault) error = cudaErrorInvalidMemcpyDirection;
    if (error || !bytes) return remember(error);
    struct driver *with = &driver[per_thread];
    CUdeviceptr target = (CUdeviceptr)to, source = (CUdeviceptr)from;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return remember_result(with->cuMemcpyHtoD(target, from, bytes));
    case cudaMemcpyDeviceToHost:
        return remember_result(with->cuMemcpyDtoH(to, source, bytes));
    case cudaMemcpyDeviceToDevice:
        return remember_result(with->cuMemcpyDtoD(target, source, bytes));
    default:
        return remember_result(with->cuMemcpy(target, source, bytes));
    }
}

static cudaError_t copied_async(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream,
                                int per_thread)
{
    cudaError_t error = context_ensure();
    if (!error && (unsigned)kind > cudaMemcpyDefault) error = cudaErrorInvalidMemcpyDirection;
    if (error || !bytes) return remember(error);
    struct driver *with = &driver[per_thread];
    CUdeviceptr target = (CUdeviceptr)to, source = (CUdeviceptr)from;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return remember_result(with->cuMemcpyHtoDAsync(target, from, bytes, stream));
    case cudaMemcpyDeviceToHost:
        return remember_result(with->cuMemcpyDtoHAsync(to, source, bytes, stream));
    case cudaMemcpyDeviceToDevice:
        return remember_result(with->cuMemcpyDtoDAsync(target, source, bytes, stream));
    default:
        return remember_result(with->cuMemcpyAsync(target, source, bytes, stream));
    }
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return copied(to, from, bytes, kind, 0);
}

EXPORT cudaError_t cudaMemcpy_ptds(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return copied(to, from, bytes, kind, 1);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copied_async(to, from, bytes, kind, stream, 0);
}

EXPORT cudaError_t cudaMemcpyAsync_ptsz(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                        cudaStream_t stream)
{
    return copied_async(to, from, bytes, kind, stream, 1);
}

/* ---- symbols ---- */

static cudaError_t symbol_place(const void *symbol, size_t offset, size_t bytes, char **place)
{
    CUdeviceptr address;
    size_t size;
    cudaError_t error = symbol_find(symbol, &address, &size);
    if (!error && (offset > size || bytes > size - offset)) error = cudaErrorInvalidValue;
    if (!error) *place = (char *)address + offset;
    return error;
}

static cudaError_t to_symbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                             enum cudaMemcpyKind kind, cudaStream_t stream, int per_thread, bool async)
{
    char *place;
    cudaError_t error = symbol_place(symbol, offset, bytes, &place);
    if (!error && (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost))
        error = cudaErrorInvalidMemcpyDirection;
    if (error) return remember(error);
    return async ? copied_async(place, from, bytes, kind, stream, per_thread)
                 : copied(place, from, bytes, kind, per_thread);
}

static cudaError_t from_symbol(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
                               cudaStream_t stream, int per_thread, bool async)
{
    char *place;
    cudaError_t error = symbol_place(symbol, offset, bytes, &place);
    if (!error && (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost))
        error = cudaErrorInvalidMemcpyDirection;
    if (error) return remember(error);
    return async ? copied_async(to, place, bytes, kind, stream, per_thread)
                 : copied(to, place, bytes, kind, per_thread);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind)
{
    return to_symbol(symbol, from, bytes, offset, kind, NULL, 0, false);
}

EXPORT cudaError_t cudaMemcpyToSymbol_ptds(const void *symbol, const void *from, size_t bytes, size_t offset,
                                           enum cudaMemcpyKind kind)
{
    return to_symbol(symbol, from, bytes, offset, kind, NULL, 1, false);
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
    return from_symbol(to, symbol, bytes, offset, kind, NULL, 0, false);
}

EXPORT cudaError_t cudaMemcpyFromSymbol_ptds(void *to, const void *symbol, size_t bytes, size_t offset,
                                             enum cudaMemcpyKind kind)
{
    return from_symbol(to, symbol, bytes, offset, kind, NULL, 1, false);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return to_symbol(symbol, from, bytes, offset, kind, stream, 0, true);
}

EXPORT cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void *symbol, const void *from, size_t bytes, size_t offset,
                                                enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return to_symbol(symbol, from, bytes, offset, kind, stream, 1, true);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return from_symbol(to, symbol, bytes, offset, kind, stream, 0, true);
}

EXPORT cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void *to, const void *symbol, size_t bytes, size_t offset,
                                                  enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return from_symbol(to, symbol, bytes, offset, kind, stream, 1, true);
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    size_t bytes;
    return remember(address ? symbol_find(symbol, (CUdeviceptr *)address, &bytes) : cudaErrorInvalidValue);
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    CUdeviceptr address;
    return remember(bytes ? symbol_find(symbol, &address, bytes) : cudaErrorInvalidValue);
}

/* ---- two and three dimensions ---- */

static CUmemorytype source_type(enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
    case cudaMemcpyHostToDevice:
        return CU_MEMORYTYPE_HOST;
    case cudaMemcpyDefault:
        return CU_MEMORYTYPE_UNIFIED;
    default:
        return CU_MEMORYTYPE_DEVICE;
    }
}

static CUmemorytype target_type(enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
    case cudaMemcpyDeviceToHost:
        return CU_MEMORYTYPE_HOST;
    case cudaMemcpyDefault:
        return CU_MEMORYTYPE_UNIFIED;
    default:
        return CU_MEMORYTYPE_DEVICE;
    }
}

static cudaError_t copied_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                             size_t height, enum cudaMemcpyKind kind, cudaStream_t stream, int per_thread, bool async)
{
    cudaError_t error = context_ensure();
    if (!error && (unsigned)kind > cudaMemcpyDefault) error = cudaErrorInvalidMemcpyDirection;
    if (!error && (width > to_pitch || width > from_pitch)) error = cudaErrorInvalidPitchValue;
    if (error || !width || !height) return remember(error);
    CUDA_MEMCPY2D copy = {.srcMemoryType = source_type(kind),
                          .srcHost = from,
                          .srcDevice = (CUdeviceptr)from,
                          .srcPitch = from_pitch,
                          .dstMemoryType = target_type(kind),
                          .dstHost = to,
                          .dstDevice = (CUdeviceptr)to,
                          .dstPitch = to_pitch,
                          .WidthInBytes = width,
                          .Height = height};
    struct driver *with = &driver[per_thread];
    return remember_result(async ? with->cuMemcpy2DAsync(&copy, stream) : with->cuMemcpy2DUnaligned(&copy));
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind)
{
    return copied_2d(to, to_pitch, from, from_pitch, width, height, kind, NULL, 0, false);
}

EXPORT cudaError_t cudaMemcpy2D_ptds(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                     size_t height, enum cudaMemcpyKind kind)
{
    return copied_2d(to, to_pitch, from, from_pitch, width, height, kind, NULL, 1, false);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copied_2d(to, to_pitch, from, from_pitch, width, height, kind, stream, 0, true);
}

EXPORT cudaError_t cudaMemcpy2DAsync_ptsz(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                          size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copied_2d(to, to_pitch, from, from_pitch, width, height, kind, stream, 1, true);
}

/* The driver's form of a three-dimensional copy between pitched pointers. */
cudaError_t copy_3d_convert(const struct cudaMemcpy3DParms *in, CUDA_MEMCPY3D *out)
{
    if (!in || in->srcArray || in->dstArray) return cudaErrorInvalidValue;
    if ((unsigned)in->kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    *out = (CUDA_MEMCPY3D){.srcXInBytes = in->srcPos.x,
                           .srcY = in->srcPos.y,
                           .srcZ = in->srcPos.z,
                           .srcMemoryType = source_type(in->kind),
                           .srcHost = in->srcPtr.ptr,
                           .srcDevice = (CUdeviceptr)in->srcPtr.ptr,
                           .srcPitch = in->srcPtr.pitch,
                           .srcHeight = in->srcPtr.ysize,
                           .dstXInBytes = in->dstPos.x,
                           .dstY = in->dstPos.y,
                           .dstZ = in->dstPos.z,
                           .dstMemoryType = target_type(in->kind),
                           .dstHost = in->dstPtr.ptr,
                           .dstDevice = (CUdeviceptr)in->dstPtr.ptr,
                           .dstPitch = in->dstPtr.pitch,
                           .dstHeight = in->dstPtr.ysize,
                           .WidthInBytes = in->extent.width,
                           .Height = in->extent.height,
                           .Depth = in->extent.depth};
    return cudaSuccess;
}

static cudaError_t copied_3d(const struct cudaMemcpy3DParms *parameters, cudaStream_t stream, int per_thread,
                             bool async)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = context_ensure();
    if (!error) error = copy_3d_convert(parameters, &copy);
    if (error || !copy.WidthInBytes || !copy.Height || !copy.Depth) return remember(error);
    struct driver *with = &driver[per_thread];
    return remember_result(async ? with->cuMemcpy3DAsync(&copy, stream) : with->cuMemcpy3D(&copy));
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *parameters) { return copied_3d(parameters, NULL, 0, false); }
EXPORT cudaError_t cudaMemcpy3D_ptds(const struct cudaMemcpy3DParms *parameters)
{
    return copied_3d(parameters, NULL, 1, false);
}
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *parameters, cudaStream_t stream)
{
    return copied_3d(parameters, stream, 0, true);
}
EXPORT cudaError_t cudaMemcpy3DAsync_ptsz(const struct cudaMemcpy3DParms *parameters, cudaStream_t stream)
{
    return copied_3d(parameters, stream, 1, true);
}

static cudaError_t batched(void *const *to, const void *const *from, const size_t *bytes, size_t count,
                           struct cudaMemcpyAttributes *attributes, size_t *starts, size_t attribute_count,
                           cudaStream_t stream, int per_thread)
{
    CALL(per_thread, cuMemcpyBatchAsync, (CUdeviceptr *)to, (CUdeviceptr *)from, (size_t *)bytes, count,
         (CUmemcpyAttributes *)attributes, starts, attribute_count, stream);
}

cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *bytes, size_t count,
                                 struct cudaMemcpyAttributes *attributes, size_t *starts, size_t attribute_count,
                                 cudaStream_t stream)
{
    return batched(to, from, bytes, count, attributes, starts, attribute_count, stream, 0);
}

EXPORT cudaError_t cudaMemcpyBatchAsync_ptsz(void *const *to, const void *const *from, const size_t *bytes,
                                             size_t count, struct cudaMemcpyAttributes *attributes, size_t *starts,
                                             size_t attribute_count, cudaStream_t stream)
{
    return batched(to, from, bytes, count, attributes, starts, attribute_count, stream, 1);
}

/* ---- fills ---- */

static cudaError_t filled(void *pointer, int value, size_t bytes, cudaStream_t stream, int per_thread, bool async)
{
    cudaError_t error = context_ensure();
    if (error || !bytes) return remember(error);
    struct driver *with = &driver[per_thread];
    CUdeviceptr address = (CUdeviceptr)pointer;
    return remember_result(async ? with->cuMemsetD8Async(address, (unsigned char)value, bytes, stream)
                                 : with->cuMemsetD8(address, (unsigned char)value, bytes));
}

static cudaError_t filled_2d(void *pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream,
                             int per_thread, bool async)
{
    cudaError_t error = context_ensure();
    if (error || !width || !height) return remember(error);
    struct driver *with = &driver[per_thread];
    CUdeviceptr address = (CUdeviceptr)pointer;
    return remember_result(async ? with->cuMemsetD2D8Async(address, pitch, (unsigned char)value, width, height, stream)
                                 : with->cuMemsetD2D8(address, pitch, (unsigned char)value, width, height));
}

static cudaError_t filled_3d(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent, cudaStream_t stream,
                             int per_thread, bool async)
{
    cudaError_t error = cudaSuccess;
    for (size_t z = 0; z < extent.depth && !error; z++)
        error = filled_2d((char *)pitched.ptr + z * pitched.pitch * pitched.ysize, pitched.pitch, value, extent.width,
                          extent.height, stream, per_thread, async);
    return error;
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes) { return filled(pointer, value, bytes, NULL, 0, false); }
EXPORT cudaError_t cudaMemset_ptds(void *pointer, int value, size_t bytes)
{
    return filled(pointer, value, bytes, NULL, 1, false);
}
cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream)
{
    return filled(pointer, value, bytes, stream, 0, true);
}
EXPORT cudaError_t cudaMemsetAsync_ptsz(void *pointer, int value, size_t bytes, cudaStream_t stream)
{
    return filled(pointer, value, bytes, stream, 1, true);
}
cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height)
{
    return filled_2d(pointer, pitch, value, width, height, NULL, 0, false);
}
EXPORT cudaError_t cudaMemset2D_ptds(void *pointer, size_t pitch, int value, size_t width, size_t height)
{
    return filled_2d(pointer, pitch, value, width, height, NULL, 1, false);
}
cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
    return filled_2d(pointer, pitch, value, width, height, stream, 0, true);
}
EXPORT cudaError_t cudaMemset2DAsync_ptsz(void *pointer, size_t pitch, int value, size_t width, size_t height,
                                          cudaStream_t stream)
{
    return filled_2d(pointer, pitch, value, width, height, stream, 1, true);
}
cudaError_t cudaMemset3D(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent)
{
    return filled_3d(pitched, value, extent, NULL, 0, false);
}
EXPORT cudaError_t cudaMemset3D_ptds(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent)
{
    return filled_3d(pitched, value, extent, NULL, 1, false);
}
cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent, cudaStream_t stream)
{
    return filled_3d(pitched, value, extent, stream, 0, true);
}
EXPORT cudaError_t cudaMemset3DAsync_ptsz(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent,
                                          cudaStream_t stream)
{
    return filled_3d(pitched, value, extent, stream, 1, true);
}
