#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include "shim/buffer.h"
#include "shim/report.h"

/* Who adds a buffer lets time be sampled; not here. */
void report_tick(uint64_t now_ns) { (void)now_ns; }

static struct buffer make(uintptr_t address, size_t bytes, struct site *site)
{
    return (struct buffer){
        .address = address, .bytes = bytes, .kind = BUFFER_PINNED, .site = site, .id = buffer_next_id()};
}

Test(buffer, what_was_added_is_found_until_it_is_removed)
{
    struct buffer one = make(0x1000, 64, NULL), out;
    cr_assert(buffer_add(&one));
    cr_assert(buffer_find(0x1000, &out));
    cr_assert_eq(out.bytes, 64);
    cr_assert_not(buffer_find(0x1001, &out));
    cr_assert(buffer_remove(0x1000, &out));
    cr_assert_eq(out.id, one.id);
    cr_assert_not(buffer_find(0x1000, &out));
    cr_assert_not(buffer_remove(0x1000, &out));
}

Test(buffer, is_counted_at_its_site_and_in_the_totals)
{
    static struct site counted, *site = &counted;
    struct usage totals[BUFFER_KINDS];
    struct buffer one = make(0x1000, 100, site), two = make(0x2000, 50, site), out;
    buffer_add(&one);
    buffer_add(&two);
    buffer_remove(0x1000, &out);
    const struct site_usage *usage = &site->usage[BUFFER_PINNED];
    cr_assert_eq(usage->live_bytes, 50);
    cr_assert_eq(usage->live_count, 1);
    cr_assert_eq(usage->peak_bytes, 150);
    cr_assert_eq(usage->total_count, 2);
    cr_assert_eq(usage->total_bytes, 150);
    buffer_totals(totals);
    cr_assert_eq(totals[BUFFER_PINNED].live_bytes, 50);
    cr_assert_eq(totals[BUFFER_PINNED].peak_bytes, 150);
    cr_assert_eq(totals[BUFFER_DEVICE].total_count, 0);
}

Test(buffer, an_address_that_is_added_twice_replaces_the_lost_one)
{
    static struct site counted, *site = &counted;
    struct buffer one = make(0x1000, 100, site), two = make(0x1000, 50, NULL), out;
    buffer_add(&one);
    buffer_add(&two);
    cr_assert_eq(site->usage[BUFFER_PINNED].live_count, 0);
    cr_assert(buffer_find(0x1000, &out));
    cr_assert_eq(out.bytes, 50);
}

Test(buffer, containing_finds_the_inside_and_nothing_else)
{
    struct buffer one = make(0x1000, 100, NULL), out;
    buffer_add(&one);
    cr_assert(buffer_find_containing(0x1000 + 99, &out));
    cr_assert_eq(out.address, 0x1000);
    cr_assert_not(buffer_find_containing(0x1000 + 100, &out));
    cr_assert_not(buffer_find_containing(0xfff, &out));
}

Test(buffer, freed_addresses_are_remembered_until_they_are_handed_out_again)
{
    static struct site site;
    struct site *allocated = NULL;
    struct buffer one = make(0x1000, 100, &site), out;
    cr_assert_not(buffer_was_freed(0x1000));
    cr_assert_not(buffer_was_freed(0));
    buffer_add(&one);
    buffer_remove(0x1000, &out);
    cr_assert(buffer_freed_site(0x1000, &allocated));
    cr_assert_eq(allocated, &site);
    buffer_add(&one);
    cr_assert_not(buffer_was_freed(0x1000));
    buffer_remove(0x1000, &out);
    cr_assert(buffer_was_freed(0x1000));
}

Test(buffer, a_context_takes_its_buffers_along)
{
    int first, second;
    for (uintptr_t i = 1; i <= 100; i++) {
        struct buffer one = make(i << 12, 100, NULL);
        one.context = (struct context *)(i % 2 ? &first : &second);
        buffer_add(&one);
    }
    struct buffer out;
    buffer_forget_context((struct context *)&first);
    for (uintptr_t i = 1; i <= 100; i++) cr_assert_eq(buffer_find(i << 12, &out), i % 2 == 0);
}

Test(buffer, what_goes_with_its_context_was_never_freed)
{
    static struct site counted, *site = &counted;
    char context;
    struct usage totals[BUFFER_KINDS];
    struct buffer one = make(0x1000, 100, site), two = make(0x2000, 50, site);
    one.context = (struct context *)&context;
    buffer_add(&one);
    buffer_add(&two);
    buffer_forget_context((struct context *)&context);
    cr_assert_eq(site->usage[BUFFER_PINNED].live_bytes, 50);
    cr_assert_eq(site->usage[BUFFER_PINNED].abandoned_bytes, 100);
    buffer_totals(totals);
    cr_assert_eq(totals[BUFFER_PINNED].live_count, 1);
    cr_assert_eq(totals[BUFFER_PINNED].abandoned_count, 1);
}

static void *count_host_blocks(void *site)
{
    for (int i = 0; i < 10000; i++) {
        buffer_count_host(site, 3);
        buffer_count_host(site, 5);
        buffer_uncount_host(site, 3);
    }
    return NULL;
}

Test(buffer, host_blocks_are_counted_by_several_threads_and_have_no_entry)
{
    static struct site site;
    struct usage totals[BUFFER_KINDS];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, count_host_blocks, &site);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    buffer_totals(totals);
    cr_assert_eq(totals[BUFFER_HOST].live_bytes, 40000 * 5);
    cr_assert_eq(totals[BUFFER_HOST].total_bytes, 40000 * 8);
    cr_assert_geq(totals[BUFFER_HOST].peak_bytes, 40000 * 5);
    cr_assert_leq(totals[BUFFER_HOST].peak_bytes, 40000 * 5 + 4 * 3);
    cr_assert_eq(site.usage[BUFFER_HOST].live_count, 40000);
}

static void count(const struct buffer *buffer, void *argument) { *(size_t *)argument += buffer->bytes == 64; }

Test(buffer, two_hundred_thousand_live_at_once)
{
    size_t counted = 0;
    struct buffer out;
    for (uintptr_t i = 0; i < 200000; i++) {
        struct buffer one = make(0x7f0000000000 + i * 512, 64, NULL);
        cr_assert(buffer_add(&one));
    }
    buffer_for_each(count, &counted);
    cr_assert_eq(counted, 200000);
    for (uintptr_t i = 0; i < 200000; i++) cr_assert(buffer_remove(0x7f0000000000 + (i * 7919 % 200000) * 512, &out));
    counted = 0;
    buffer_for_each(count, &counted);
    cr_assert_eq(counted, 0);
}

static void *churn(void *base)
{
    struct buffer out;
    for (uintptr_t i = 0; i < 100000; i++) {
        struct buffer one = make((uintptr_t)base + i % 100, 8, NULL);
        if (!buffer_add(&one) || !buffer_find(one.address, &out) || !buffer_remove(one.address, &out)) return "lost";
    }
    return NULL;
}

Test(buffer, threads_do_not_disturb_each_other)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, churn, (void *)((i + 1) << 20));
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        cr_assert_null(wrong);
    }
}
