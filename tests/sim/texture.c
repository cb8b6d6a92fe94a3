/* Things that name memory without touching it: textures, tensor maps, exported ranges. Kernels of the simulator read
 * none of them; what matters is which addresses are accepted. */
#include "copy.h"
#include <unistd.h>
#include <sys/mman.h>

struct texture {
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    bool used;
};
static struct texture textures[256];

/* Linear memory must be the device's or shared, and aligned. A buffer that was freed while its chunk is still there
 * passes. */
static bool linear_accepted(uint64_t address)
{
    struct location location;
    sim_lock();
    location_of(address, &location);
    bool in_chunk = location.place == PLACE_PAGEABLE && chunk_is_there(address);
    sim_unlock();
    return address % 512 == 0 && (location.place != PLACE_PAGEABLE || in_chunk);
}

CUresult cuTexObjectCreate(CUtexObject *object, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
                           const CUDA_RESOURCE_VIEW_DESC *view)
{
    SIM_ENTER(cuTexObjectCreate);
    (void)view;
    if (!object || !resource || !texture) return CUDA_ERROR_INVALID_VALUE;
    if (resource->resType == CU_RESOURCE_TYPE_LINEAR && !linear_accepted(resource->res.linear.devPtr))
        return CUDA_ERROR_INVALID_VALUE;
    if (resource->resType == CU_RESOURCE_TYPE_PITCH2D &&
        (!linear_accepted(resource->res.pitch2D.devPtr) || resource->res.pitch2D.pitchInBytes % 32))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof textures / sizeof *textures; i++) {
        if (__atomic_exchange_n(&textures[i].used, true, __ATOMIC_ACQ_REL)) continue;
        textures[i].resource = *resource;
        textures[i].texture = *texture;
        *object = i + 1;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static struct texture *texture_of(CUtexObject object)
{
    size_t index = object - 1;
    return index < sizeof textures / sizeof *textures && textures[index].used ? &textures[index] : NULL;
}

CUresult cuTexObjectDestroy(CUtexObject object)
{
    SIM_ENTER(cuTexObjectDestroy);
    struct texture *texture = texture_of(object);
    if (!texture) return CUDA_ERROR_INVALID_VALUE;
    __atomic_store_n(&texture->used, false, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUtexObject object)
{
    SIM_ENTER(cuTexObjectGetResourceDesc);
    struct texture *texture = texture_of(object);
    if (!texture || !resource) return CUDA_ERROR_INVALID_VALUE;
    *resource = texture->resource;
    return CUDA_SUCCESS;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *description, CUtexObject object)
{
    SIM_ENTER(cuTexObjectGetTextureDesc);
    struct texture *texture = texture_of(object);
    if (!texture || !description) return CUDA_ERROR_INVALID_VALUE;
    *description = texture->texture;
    return CUDA_SUCCESS;
}

/* Only writes addresses down; it does not look whose they are. */
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill)
{
    SIM_ENTER(cuTensorMapEncodeTiled);
    (void)type, (void)strides, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    if (!map || !rank || rank > 5 || !extents || !box || !element_strides || (uintptr_t)address % 16)
        return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0, sizeof *map);
    memcpy(map, &address, sizeof address);
    return CUDA_SUCCESS;
}

/* A file descriptor of whole pages of device memory (64 KiB). */
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type,
                                       unsigned long long flags)
{
    SIM_ENTER(cuMemGetHandleForAddressRange);
    (void)flags;
    if (!handle || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || !bytes || address % 65536 || bytes % 65536)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    bool there = chunk_is_there(address) && chunk_is_there(address + bytes - 1);
    sim_unlock();
    int file = there ? memfd_create("range", MFD_CLOEXEC) : -1;
    if (file < 0) return CUDA_ERROR_INVALID_VALUE;
    *(int *)handle = file;
    return CUDA_SUCCESS;
}
