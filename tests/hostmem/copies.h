/* What tests of copies share: contents, requests, and a stream that is let go later. */
#ifndef TESTS_HOSTMEM_COPIES_H
#define TESTS_HOSTMEM_COPIES_H
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>
#include "shim/hostmem.h"
#include "tests/hostmem/fake_driver.h"
#include "tests/hostmem/stubs.h"

#define MIB ((size_t)1 << 20)

static inline void copies_setup(void)
{
    stub_options((size_t)1 << 30, 2);
    fake_start();
}

static inline void fill(char *memory, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i += 8) {
        unsigned long word = (i + seed) * 0x9e3779b97f4a7c15ul;
        memcpy(memory + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

static inline struct copy_request flat(enum copy_direction direction, void *device, void *host, size_t bytes,
                                       CUstream stream, bool async)
{
    return copy_linear(direction, (CUdeviceptr)(uintptr_t)device, host, bytes, stream, async);
}

static inline bool do_copy(struct copy_request request)
{
    CUresult result = CUDA_ERROR_UNKNOWN;
    bool done = hostmem_copy(&request, &result);
    if (done) cr_assert_eq(result, CUDA_SUCCESS, "answer %d", (int)result);
    return done;
}

struct letting_go {
    CUstream stream;
    int us;
};
static inline void *let_go_later(void *argument)
{
    struct letting_go *what = argument;
    usleep((useconds_t)what->us);
    fake_let_go(what->stream);
    return NULL;
}

#endif
