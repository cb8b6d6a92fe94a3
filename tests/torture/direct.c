/* The hostmem objects on the fake driver, linked in: for sanitizers. */
#include <stdlib.h>
#include <string.h>
#include "shim/hostmem.h"
#include "shim/hostmem_alloc.h"
#include "shim/shim.h"
#include "tests/hostmem/fake_driver.h"
#include "tests/hostmem/stubs.h"
#include "tests/torture/torture.h"

static char *device;

static void *take(size_t bytes, size_t alignment, bool zeroed)
{
    void *block = bytes >= hostmem_min_bytes() ? hostmem_block_take(bytes, alignment, zeroed) : NULL;
    if (block) return block;
    if (zeroed) return calloc(1, bytes);
    return posix_memalign(&block, alignment, bytes) ? NULL : block;
}
static void give(void *block)
{
    if (!hostmem_owns(block))
        free(block);
    else if (!hostmem_block_give(block))
        abort();
}
static void *resize(void *block, size_t bytes)
{
    if (!hostmem_owns(block)) return bytes < hostmem_min_bytes() ? realloc(block, bytes) : realloc(block, bytes);
    size_t usable = hostmem_block_usable(block);
    void *resized = bytes >= hostmem_min_bytes() / 2 ? hostmem_block_resize(block, bytes) : NULL;
    if (resized) return resized;
    resized = malloc(bytes);
    memcpy(resized, block, usable < bytes ? usable : bytes);
    give(block);
    return resized;
}

static bool copy(enum copy_direction direction, size_t offset, void *host, size_t bytes, bool async, int thread)
{
    struct copy_request request = {.direction = direction,
                                   .device = (CUdeviceptr)(device + (size_t)thread * DEVICE_BYTES + offset),
                                   .host = host,
                                   .width = bytes,
                                   .height = 1,
                                   .depth = 1,
                                   .stream = async ? (CUstream)(size_t)(0x100 + thread) : CU_STREAM_LEGACY,
                                   .async = async};
    CUresult result = CUDA_SUCCESS;
    if (hostmem_copy(&request, &result)) return result == CUDA_SUCCESS;
    if (direction == COPY_H2D)
        return (async ? shim.real.cuMemcpyHtoDAsync_v2(request.device, host, bytes, request.stream)
                      : shim.real.cuMemcpyHtoD_v2(request.device, host, bytes)) == CUDA_SUCCESS;
    return (async ? shim.real.cuMemcpyDtoHAsync_v2(host, request.device, bytes, request.stream)
                  : shim.real.cuMemcpyDtoH_v2(host, request.device, bytes)) == CUDA_SUCCESS;
}
static bool copy_in(size_t offset, const void *host, size_t bytes, bool async, int thread)
{
    return copy(COPY_H2D, offset, (void *)host, bytes, async, thread);
}
static bool copy_out(void *host, size_t offset, size_t bytes, bool async, int thread)
{
    return copy(COPY_D2H, offset, host, bytes, async, thread);
}
static void wait(int thread) { (void)thread; }
static void after_fork(bool child)
{
    if (child)
        hostmem_after_fork_child();
    else
        hostmem_after_fork_parent();
}

bool backend_start(struct backend *backend, int threads)
{
    stub_options((size_t)256 << 20, 2);
    fake_start();
    device = fake_device(DEVICE_BYTES * (size_t)threads);
    atexit(hostmem_at_exit);
    *backend = (struct backend){take, resize, give, copy_in, copy_out, wait, hostmem_before_fork, after_fork, true};
    return true;
}
