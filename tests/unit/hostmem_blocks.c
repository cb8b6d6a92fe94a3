/* Blocks, their addresses, the cache of freed ones, before a driver was seen. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "shim/hostmem.h"
#include "shim/hostmem_alloc.h"
#include "shim/lend_watch.h"
#include "shim/hostmem_internal.h"
#include "shim/shim.h"
#include "tests/hostmem/stubs.h"

#define MIB ((size_t)1 << 20)

static void setup(void) { stub_options((size_t)1 << 30, 0); }
TestSuite(hostmem_blocks, .init = setup, .timeout = 60);

Test(hostmem_blocks, starts_are_aligned_and_differ_by_pages_and_each_four_in_their_place_of_a_page)
{
    unsigned pages = 0;
    uintptr_t places[16];
    for (int i = 0; i < 16; i++) {
        uintptr_t at = (uintptr_t)hostmem_block_take(8 * MIB, 16, false);
        cr_assert_eq(at % 64, 0);
        places[i] = at % 4096;
        pages |= 1u << (at / 4096 % 32);
    }
    cr_assert_eq(__builtin_popcount(pages), 16);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < i; j++) cr_assert_eq(places[i] == places[j], i / 4 == j / 4);
    for (size_t alignment = 16; alignment <= 64 * MIB; alignment *= 2)
        for (int i = 0; i < 3; i++)
            cr_assert_eq((uintptr_t)hostmem_block_take(5 * MIB, alignment, false) % alignment, 0);
}

Test(hostmem_blocks, what_may_be_lent_starts_at_a_huge_page)
{
    bool lends = watch_possible();
    for (int i = 0; i < 4; i++)
        cr_assert(!lends || (uintptr_t)hostmem_block_take(33 * MIB, 16, false) % HOSTMEM_LEND_UNIT == 0);
    shim.options.lend = LEND_OFF;
    uintptr_t starts = 0;
    for (int i = 0; i < 4; i++) starts |= (uintptr_t)hostmem_block_take(33 * MIB, 16, false) % HOSTMEM_LEND_UNIT;
    cr_assert_neq(starts, 0);
}

Test(hostmem_blocks, only_the_start_of_a_held_block_is_given_back_and_only_once)
{
    char *block = hostmem_block_take(8 * MIB, 16, false);
    cr_assert(!hostmem_block_give(block + 16));
    cr_assert_eq(hostmem_block_usable(block + 4096), 0);
    cr_assert_geq(hostmem_block_usable(block), 8 * MIB);
    cr_assert(hostmem_block_give(block));
    cr_assert(!hostmem_block_give(block));
}

Test(hostmem_blocks, an_allocation_at_the_address_of_a_freed_one_is_another)
{
    char *block = NULL;
    uint64_t before = 0;
    for (int i = 0; i < 4; i++) { /* from the second one on out of the cache */
        char *next = hostmem_block_take(8 * MIB, 16, false);
        uint64_t serial = hostmem_serial((uintptr_t)next + 4 * MIB);
        cr_assert_gt(serial, before);
        cr_assert_eq(hostmem_serial((uintptr_t)next), serial);
        cr_assert(!block || i < 2 || next == block);
        before = serial, block = next;
        hostmem_block_give(next);
    }
    cr_assert_eq(hostmem_serial((uintptr_t)&block), 0);
}

Test(hostmem_blocks, addresses_of_freed_blocks_join_and_are_used_again)
{
    char *blocks[64];
    uintptr_t highest = 0, second = 0;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 64; i++)
            blocks[i] = hostmem_block_take((size_t)(40 + (i * 7 + round) % 33) * MIB, 16, false);
        for (int i = 0; i < 64; i++) {
            if ((uintptr_t)blocks[i] > highest) highest = (uintptr_t)blocks[i];
            cr_assert(hostmem_block_give(blocks[(i * 29) % 64]));
        }
        if (round == 2) second = highest;
    }
    cr_assert_leq(highest, second + 512 * MIB);
}

Test(hostmem_blocks, growing_and_shrinking_keep_the_bytes)
{
    unsigned char *block = hostmem_block_take(5 * MIB, 16, false);
    size_t bytes = 5 * MIB;
    memset(block, 3, bytes);
    unsigned random = 7;
    for (int i = 0; i < 200; i++) {
        random = random * 1664525 + 1013904223;
        size_t to = 4 * MIB + random % (60 * MIB);
        unsigned char *other = i % 5 ? NULL : hostmem_block_take(6 * MIB, 16, false); /* in the way */
        block = hostmem_block_resize(block, to);
        cr_assert_not_null(block);
        size_t kept = bytes < to ? bytes : to;
        cr_assert_eq(block[0], 3);
        cr_assert_eq(block[kept - 1], 3);
        cr_assert_eq(block[kept / 2], 3);
        cr_assert_geq(hostmem_block_usable(block), to);
        memset(block + kept, 3, to - kept);
        bytes = to;
        if (other && i % 2) hostmem_block_give(other);
    }
}

Test(hostmem_blocks, a_grown_block_keeps_its_memory_by_moving_pages_not_bytes)
{
    char *block = hostmem_block_take(64 * MIB, 16, false), *after = hostmem_block_take(8 * MIB, 16, false);
    memset(block, 1, MIB); /* the rest is never touched */
    unsigned char resident[64];
    block = hostmem_block_resize(block, 256 * MIB);
    cr_assert(after && block);
    cr_assert_eq(mincore((void *)(((uintptr_t)block + 32 * MIB) & ~4095ul), 64 * 4096, resident), 0);
    for (int i = 0; i < 64; i++) cr_assert_eq(resident[i] & 1, 0);
}

Test(hostmem_blocks, a_first_free_goes_back_to_the_system_and_sizes_that_return_are_kept_as_glibc_would)
{
    char *first = hostmem_block_take(8 * MIB, 16, false);
    memset(first, 1, 8 * MIB);
    hostmem_block_give(first);
    cr_assert_eq(hostmem.kept, 0);
    char *again = hostmem_block_take(8 * MIB - 100000, 16, false);
    hostmem_block_give(again);
    cr_assert_gt(hostmem.kept, 0);
    cr_assert_eq(hostmem_block_take(8 * MIB - 100000, 16, false), again);
    char *zero = (memset(again, 5, 7 * MIB), hostmem_block_give(again), hostmem_block_take(7 * MIB + 900000, 16, true));
    for (size_t i = 0; i < 7 * MIB + 900000; i++) cr_assert_eq(zero[i], 0);
    char *large = hostmem_block_take(100 * MIB, 16, false);
    for (int i = 0; i < 3; i++) {
        hostmem_block_give(large);
        cr_assert_leq(hostmem.kept, 64 * MIB);
        large = hostmem_block_take(100 * MIB, 16, false);
    }
}

Test(hostmem_blocks, the_budget_is_a_share_of_what_is_left)
{
    shim.options.pin_limit = 0;
    budget_refresh();
    cr_assert_gt(budget_bytes(), 0);
    cr_assert_leq(budget_bytes(), budget_available() / 4 + MIB);
    cr_assert_geq(budget_cpus(), 1);
}
