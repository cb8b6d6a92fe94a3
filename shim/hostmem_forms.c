/* The driver's calls for a copy_request, and questions about one. */
#include "shim/hostmem_internal.h"
#include "shim/shim.h"

bool copy_is_flat(const struct copy_request *request)
{
    bool rows =
        request->height == 1 || (request->width == request->host_pitch && request->width == request->device_pitch);
    if (request->depth == 1) return rows;
    size_t slice = request->width * request->height;
    return rows && request->host_slice == slice && request->device_slice == slice;
}

size_t copy_bytes(const struct copy_request *request) { return request->width * request->height * request->depth; }

size_t copy_host_extent(const struct copy_request *request)
{
    return (request->depth - 1) * request->host_slice + (request->height - 1) * request->host_pitch + request->width;
}

static size_t device_extent(const struct copy_request *request)
{
    return (request->depth - 1) * request->device_slice + (request->height - 1) * request->device_pitch +
           request->width;
}

bool copy_device_valid(const struct copy_request *request)
{
    CUdeviceptr at = request->device, end = at + device_extent(request);
    if (!shim.real.cuMemGetAddressRange_v2) return false;
    while (at < end) { /* mappings may lie one behind the other */
        CUdeviceptr base = 0;
        size_t bytes = 0;
        if (shim.real.cuMemGetAddressRange_v2(&base, &bytes, at) != CUDA_SUCCESS || base + bytes <= at) return false;
        at = base + bytes;
    }
    return true;
}

static CUDA_MEMCPY2D form_2d(const struct copy_request *request)
{
    CUDA_MEMCPY2D form = {.WidthInBytes = request->width, .Height = request->height};
    if (request->direction == COPY_H2D) {
        form.srcMemoryType = CU_MEMORYTYPE_HOST;
        form.srcHost = request->host;
        form.srcPitch = request->host_pitch;
        form.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        form.dstDevice = request->device;
        form.dstPitch = request->device_pitch;
    } else {
        form.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        form.srcDevice = request->device;
        form.srcPitch = request->device_pitch;
        form.dstMemoryType = CU_MEMORYTYPE_HOST;
        form.dstHost = request->host;
        form.dstPitch = request->host_pitch;
    }
    return form;
}

static CUDA_MEMCPY3D form_3d(const struct copy_request *request)
{
    CUDA_MEMCPY3D form = {.WidthInBytes = request->width, .Height = request->height, .Depth = request->depth};
    size_t host_rows = request->host_pitch ? request->host_slice / request->host_pitch : 0;
    size_t device_rows = request->device_pitch ? request->device_slice / request->device_pitch : 0;
    if (request->direction == COPY_H2D) {
        form.srcMemoryType = CU_MEMORYTYPE_HOST;
        form.srcHost = request->host;
        form.srcPitch = request->host_pitch;
        form.srcHeight = host_rows;
        form.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        form.dstDevice = request->device;
        form.dstPitch = request->device_pitch;
        form.dstHeight = device_rows;
    } else {
        form.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        form.srcDevice = request->device;
        form.srcPitch = request->device_pitch;
        form.srcHeight = device_rows;
        form.dstMemoryType = CU_MEMORYTYPE_HOST;
        form.dstHost = request->host;
        form.dstPitch = request->host_pitch;
        form.dstHeight = host_rows;
    }
    return form;
}

CUresult copy_enqueue(const struct copy_request *request)
{
    const struct driver *real = &shim.real;
    if (copy_is_flat(request)) {
        size_t bytes = copy_bytes(request);
        return request->direction == COPY_H2D
                   ? real->cuMemcpyHtoDAsync_v2(request->device, request->host, bytes, request->stream)
                   : real->cuMemcpyDtoHAsync_v2(request->host, request->device, bytes, request->stream);
    }
    if (request->depth == 1) {
        CUDA_MEMCPY2D form = form_2d(request);
        return real->cuMemcpy2DAsync_v2(&form, request->stream);
    }
    CUDA_MEMCPY3D form = form_3d(request);
    return real->cuMemcpy3DAsync_v2(&form, request->stream);
}

CUresult copy_native(const struct copy_request *request)
{
    if (request->async) return copy_enqueue(request);
    const struct driver *real = &shim.real;
    bool own = request->stream == CU_STREAM_PER_THREAD;
    if (copy_is_flat(request)) {
        size_t bytes = copy_bytes(request);
        if (request->direction == COPY_H2D)
            return (own ? real->cuMemcpyHtoD_v2_ptds : real->cuMemcpyHtoD_v2)(request->device, request->host, bytes);
        return (own ? real->cuMemcpyDtoH_v2_ptds : real->cuMemcpyDtoH_v2)(request->host, request->device, bytes);
    }
    if (request->depth == 1) {
        CUDA_MEMCPY2D form = form_2d(request);
        return (own ? real->cuMemcpy2DUnaligned_v2_ptds : real->cuMemcpy2DUnaligned_v2)(&form);
    }
    CUDA_MEMCPY3D form = form_3d(request);
    return (own ? real->cuMemcpy3D_v2_ptds : real->cuMemcpy3D_v2)(&form);
}
