#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include "shim/arena.h"

Test(arena, blocks_are_aligned_and_apart)
{
    char *blocks[2000];
    for (size_t i = 0; i < 2000; i++) {
        blocks[i] = arena_alloc(i);
        cr_assert_not_null(blocks[i]);
        cr_assert_eq((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], (int)i, i);
    }
    for (size_t i = 0; i < 2000; i++)
        for (size_t j = 0; j < i; j++) cr_assert_eq(blocks[i][j], (char)i);
}

Test(arena, a_freed_block_is_handed_out_again)
{
    void *block = arena_alloc(100);
    arena_free(block, 100);
    cr_assert_eq(arena_alloc(97), block, "the same class of size");
}

Test(arena, cleared_blocks_are_cleared_even_if_used_before)
{
    for (size_t bytes = 1; bytes < 300000; bytes = bytes * 3 + 1) {
        char *block = arena_alloc(bytes);
        memset(block, 1, bytes);
        arena_free(block, bytes);
        block = arena_calloc(bytes);
        for (size_t i = 0; i < bytes; i++) cr_assert_eq(block[i], 0);
    }
}

Test(arena, too_much_is_null_and_errno_is_kept)
{
    errno = 77;
    cr_assert_null(arena_alloc(SIZE_MAX));
    cr_assert_null(arena_alloc((size_t)1 << 60));
    cr_assert_eq(errno, 77);
    arena_free(NULL, 5);
}

static void *churn(void *seed)
{
    unsigned char *held[64] = {0};
    size_t bytes[64] = {0};
    unsigned state = (unsigned)(uintptr_t)seed;
    for (int i = 0; i < 200000; i++) {
        state = state * 1103515245 + 12345;
        unsigned slot = state >> 16 & 63;
        if (held[slot]) {
            if (held[slot][0] != (unsigned char)slot || held[slot][bytes[slot] - 1] != (unsigned char)slot)
                return "torn";
            arena_free(held[slot], bytes[slot]);
        }
        bytes[slot] = 1 + (state >> 8) % 700;
        held[slot] = arena_alloc(bytes[slot]);
        memset(held[slot], (int)slot, bytes[slot]);
    }
    return NULL;
}

Test(arena, threads_never_share_a_block)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        cr_assert_null(wrong);
    }
}
