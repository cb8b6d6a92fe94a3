/* A program with one of each thing that a report tells, at known lines. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "shim/report.h"
#include "tests/report/fake_shim.h"

__attribute__((noinline)) static uintptr_t make_table(void)
{
    uintptr_t table = fake_allocate(BUFFER_DEVICE, 1 << 20);
    return table + 0 * (uintptr_t)printf(" ");
}

static inline __attribute__((always_inline)) uintptr_t inlined_maker(size_t bytes)
{
    return fake_allocate(BUFFER_PINNED, bytes);
}

__attribute__((noinline)) static uintptr_t make_pinned(void)
{
    return inlined_maker(4096) + 0 * (uintptr_t)printf(" ");
}

int main(int argc, char **argv)
{
    fake_start();
    uintptr_t first = make_table(), second = 0;
    for (int i = 0; i < 3; i++) second = make_table();
    make_pinned();
    if (argc > 1 && strcmp(argv[1], "tidy") == 0) return 0;
    fake_free(first);
    fake_free(first);
    fake_free(second + 512);
    return 0;
}
