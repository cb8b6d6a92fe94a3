#include <criterion/criterion.h>
#include "tests/unit/fake_vmm.h"

static struct site site_a, site_b;

static uintptr_t take(struct context *context, struct site *site, size_t bytes, enum window_place place)
{
    return window_alloc(context, site, bytes, place);
}

Test(window, slots_are_512_byte_aligned_and_disjoint)
{
    struct context *context = fake_context(MODE_ALWAYS);
    cr_assert(context);
    uintptr_t last = 0;
    for (size_t bytes = 1; bytes < 3000; bytes += 37) {
        uintptr_t at = take(context, &site_a, bytes, WINDOW_HOST);
        cr_assert(at, "no slot for %zu bytes", bytes);
        cr_assert_eq(at % 512, 0);
        struct window *window = window_at(at);
        cr_assert(window_covers(window, at, bytes));
        cr_assert_not(window_covers(window, at, bytes + 1));
        if (last) cr_assert(window_covers(window_at(last), last, 1));
        last = at;
    }
}

Test(window, interior_pointers_find_their_buffer_and_gaps_find_none)
{
    struct context *context = fake_context(MODE_ALWAYS);
    uintptr_t at = take(context, &site_a, 1000, WINDOW_HOST), start;
    size_t bytes;
    cr_assert(window_buffer(window_at(at), at + 999, &start, &bytes));
    cr_assert_eq(start, at);
    cr_assert_eq(bytes, 1000);
    cr_assert_not(window_buffer(window_at(at), at + 1000, &start, &bytes));
    window_free(window_at(at), at);
    cr_assert_not(window_buffer(window_at(at), at, &start, &bytes));
}

Test(window, one_site_has_its_windows_for_itself)
{
    struct context *context = fake_context(MODE_ALWAYS);
    uintptr_t a = take(context, &site_a, 64, WINDOW_HOST), b = take(context, &site_b, 64, WINDOW_HOST);
    cr_assert_neq(window_at(a), window_at(b));
    cr_assert_eq(window_at(take(context, &site_a, 64, WINDOW_HOST)), window_at(a));
}

Test(window, moves_both_ways_keep_every_byte)
{
    struct context *context = fake_context(MODE_AUTO);
    uintptr_t at = take(context, &site_a, 5000, WINDOW_DEVICE);
    struct window *window = window_at(at);
    char pattern[5000], back[5000];
    for (size_t i = 0; i < sizeof pattern; i++) pattern[i] = (char)(i * 31 + 7);
    fake_htod(at, pattern, sizeof pattern);
    cr_assert(window_to_host(window));
    cr_assert_eq(window->place, WINDOW_HOST);
    cr_assert_arr_eq((char *)at, pattern, sizeof pattern);
    ((char *)at)[4999] = pattern[4999] = 99;
    cr_assert(window_to_device(window));
    fake_dtoh(back, at, sizeof back);
    cr_assert_arr_eq(back, pattern, sizeof pattern);
}

Test(window, a_refused_registration_leaves_the_window_on_the_device_with_its_bytes)
{
    struct context *context = fake_context(MODE_AUTO);
    uintptr_t at = take(context, &site_a, 512, WINDOW_DEVICE);
    char pattern[512], back[512];
    memset(pattern, 77, sizeof pattern);
    fake_htod(at, pattern, sizeof pattern);
    fake.refuse_register = true;
    cr_assert_not(window_to_host(window_at(at)));
    cr_assert_eq(window_at(at)->place, WINDOW_DEVICE);
    fake_dtoh(back, at, sizeof back);
    cr_assert_arr_eq(back, pattern, sizeof pattern);
}

Test(window, no_device_memory_leaves_the_window_on_the_host_with_its_bytes)
{
    struct context *context = fake_context(MODE_ALWAYS);
    uintptr_t at = take(context, &site_b, 40000, WINDOW_HOST);
    struct window *window = window_at(at);
    memset((void *)at, 55, 40000);
    if (window->has_device) return;
    fake.refuse_create = true;
    cr_assert_not(window_to_device(window));
    cr_assert_eq(window->place, WINDOW_HOST);
    cr_assert_eq(((char *)at)[39999], 55);
}

Test(window, a_failed_move_that_cannot_be_undone_is_told)
{
    struct context *context = fake_context(MODE_ALWAYS);
    uintptr_t at = take(context, &site_b, 40000, WINDOW_HOST);
    memset((void *)at, 55, 40000);
    fake.refuse_map = true;
    cr_assert_not(window_to_device(window_at(at)));
    cr_assert_null(fake.note);
    fake.refuse_register = true;
    cr_assert_not(window_to_device(window_at(at)));
    cr_assert(fake.note && strstr(fake.note, "registered again"));
    cr_assert_eq(((char *)at)[39999], 55);
}

/* Streams by number, from 10 on: the work of some is not done. */
static bool busy[4];
static void (*meanwhile)(void);
static CUresult query(CUstream stream)
{
    if (meanwhile && stream == (CUstream)11) {
        meanwhile();
        meanwhile = NULL;
    }
    return (uintptr_t)stream >= 10 && busy[(uintptr_t)stream - 10] ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
static struct context *where;
static void first_stream_goes(void) { context_remove_stream((CUstream)11); }

Test(window, a_destroyed_stream_counts_until_its_work_is_done_and_no_longer)
{
    struct context *context = fake_context(MODE_ALWAYS);
    shim.real.cuStreamQuery = query;
    fake.events_ready = false;
    gate_enter();
    context_orphan(context, (CUstream)1);
    gate_leave_submitted();
    cr_assert_not(context_quiet(context));
    fake.events_ready = true;
    cr_assert(context_quiet(context));
    gate_note_submitted();
    cr_assert(context_quiet(context));
}

Test(window, a_stream_that_goes_while_others_are_asked_hides_none_of_them)
{
    where = fake_context(MODE_ALWAYS);
    shim.real.cuStreamQuery = query;
    for (uintptr_t i = 11; i < 14; i++) context_add_stream(where, (CUstream)i);
    gate_note_submitted();
    busy[3] = true;
    meanwhile = first_stream_goes;
    cr_assert_not(context_quiet(where));
    cr_assert_not(context_quiet(where));
    busy[3] = false;
    cr_assert(context_quiet(where));
}

Test(window, memory_in_windows_is_capped)
{
    struct context *context = fake_context(MODE_ALWAYS);
    shim.options.window_limit = 4u << 20;
    size_t got = 0;
    while (take(context, &site_a, 65536, WINDOW_HOST)) got += 65536;
    cr_assert_leq(got, shim.options.window_limit);
    cr_assert_geq(got, 2u << 20);
}

Test(window, a_slot_freed_in_stream_order_is_nobodys_until_the_stream_has_passed)
{
    struct context *context = fake_context(MODE_ALWAYS);
    uintptr_t at = take(context, &site_a, 65536, WINDOW_HOST);
    fake.events_ready = false;
    cr_assert(window_free_in_stream(window_at(at), at, NULL));
    cr_assert_not(window_covers(window_at(at), at, 1));
    cr_assert_neq(take(context, &site_a, 65536, WINDOW_HOST), at);
    fake.events_fail = true;
    for (int i = 0; i < 8; i++)
        cr_assert_neq(take(context, &site_a, 65536, WINDOW_HOST), at, "an error does not say that it has");
    fake.events_fail = false;
    fake.events_ready = true;
    bool again = false;
    for (int i = 0; i < 64; i++) again |= take(context, &site_a, 65536, WINDOW_HOST) == at;
    cr_assert(again);
}

Test(window, a_hundred_thousand_small_buffers_need_few_registrations)
{
    struct context *context = fake_context(MODE_ALWAYS);
    for (int i = 0; i < 100000; i++) cr_assert(take(context, &site_a, 64, WINDOW_HOST));
    cr_assert_leq(fake.registrations, 60);
}

Test(window, a_large_buffer_has_a_window_of_its_own_that_goes_with_it)
{
    struct context *context = fake_context(MODE_AUTO);
    uintptr_t at = window_alloc_sole(context, &site_a, 5 << 20, WINDOW_DEVICE), start;
    size_t bytes;
    cr_assert(at);
    cr_assert(window_buffer(window_at(at), at + (4 << 20), &start, &bytes));
    cr_assert_eq(start, at);
    cr_assert_eq(bytes, 5u << 20);
    window_free(window_at(at), at);
    cr_assert_null(window_at(at));
}

Test(window, a_large_buffer_is_not_given_back_in_stream_order)
{
    struct context *context = fake_context(MODE_AUTO);
    uintptr_t at = window_alloc_sole(context, &site_a, 5 << 20, WINDOW_DEVICE);
    cr_assert_not(window_free_in_stream(window_at(at), at, NULL));
    cr_assert(window_covers(window_at(at), at, 5 << 20));
    window_free(window_at(at), at);
    cr_assert_null(window_at(at));
}

Test(window, sync_memops_is_a_buffers_own_and_goes_with_it)
{
    struct context *context = fake_context(MODE_ALWAYS);
    uintptr_t a = take(context, &site_a, 512, WINDOW_HOST), b = take(context, &site_a, 512, WINDOW_HOST);
    window_set_sync_memops(window_at(a), a, true);
    cr_assert(window_sync_memops(window_at(a), a));
    cr_assert_not(window_sync_memops(window_at(b), b));
    window_free(window_at(a), a);
    cr_assert_eq(take(context, &site_a, 512, WINDOW_HOST), a);
    cr_assert_not(window_sync_memops(window_at(a), a));
}
