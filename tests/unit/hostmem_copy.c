/* Copies from and to large blocks, on a fake driver whose streams can be held. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shim/hostmem.h"
#include "shim/hostmem_alloc.h"
#include "shim/shim.h"
#include "tests/hostmem/copies.h"

TestSuite(hostmem_copy, .init = copies_setup, .timeout = 60);

Test(hostmem_copy, first_copy_registers_the_block_and_later_ones_reuse_it)
{
    size_t bytes = 40 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    fill(host, bytes, 1);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    cr_assert(memcmp(host, device, bytes) == 0);
    cr_assert_geq(fake_registered_bytes(), bytes);
    int before = fake_registrations();
    for (int i = 0; i < 5; i++) {
        fill(device, bytes, (unsigned)i + 5);
        cr_assert(do_copy(flat(COPY_D2H, device, host, bytes, CU_STREAM_LEGACY, i & 1)));
        cr_assert(memcmp(host, device, bytes) == 0);
    }
    cr_assert_eq(fake_registrations(), before);
    cr_assert_eq(fake_unregistrations(), 0);
    cr_assert_eq(fake_copies_pageable(), 0);
}

Test(hostmem_copy, every_offset_and_length_around_piece_boundaries_arrives)
{
    size_t bytes = 17 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    fill(host, bytes, 1);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    uintptr_t boundary = ((uintptr_t)host & ~(2 * MIB - 1)) + 8 * MIB;
    for (long from = -5000; from <= 5000; from += 1250)
        for (size_t length = 1; length < 6 * MIB; length = length * 5 + 3) {
            char *at = (char *)boundary + from;
            memset(device, 0, length);
            cr_assert(do_copy(flat(COPY_H2D, device, at, length, (CUstream)0x77, length & 1)));
            cr_assert(memcmp(device, at, length) == 0, "from %ld, %zu bytes", from, length);
            cr_assert(do_copy(flat(COPY_D2H, device, at, length, CU_STREAM_LEGACY, length & 1)));
        }
}

Test(hostmem_copy, touching_one_percent_registers_pieces_and_not_the_block)
{
    size_t bytes = (size_t)4 << 30;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(64 * MIB);
    cr_assert(do_copy(flat(COPY_H2D, device, host + 1024 * MIB, 40 * MIB, CU_STREAM_LEGACY, false)));
    cr_assert_leq(fake_registered_bytes(), 128 * MIB);
}

Test(hostmem_copy, async_copies_up_to_2_mib_return_behind_a_busy_stream_with_their_source_reusable)
{
    size_t bytes = 32 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    memset(host, 1, bytes);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    CUstream stream = (CUstream)0x55;
    size_t sizes[] = {1, 4096, 65536, 300000, MIB, 2 * MIB};
    fake_hold(stream);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *at = host + i * 4 * MIB;
        memset(at, 7, sizes[i]);
        cr_assert(do_copy(flat(COPY_H2D, device + i * 4 * MIB, at, sizes[i], stream, true))); /* hangs if it waits */
        memset(at, 9, sizes[i]);
    }
    fake_let_go(stream);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizes[i]; k++) cr_assert_eq(device[i * 4 * MIB + k], 7);
}

Test(hostmem_copy, many_small_async_copies_behind_a_busy_stream_do_not_wait)
{
    size_t bytes = 16 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    memset(host, 1, bytes);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    CUstream stream = (CUstream)0x55;
    fake_hold(stream);
    for (int i = 0; i < 3000; i++) {
        memcpy(host, &i, 4);
        cr_assert(do_copy(flat(COPY_H2D, device + 4 * i, host, 4, stream, true)));
    }
    fake_let_go(stream);
    for (int i = 0; i < 3000; i++) cr_assert_eq(((int *)device)[i], i);
}

Test(hostmem_copy, a_large_async_copy_behind_a_busy_stream_waits_and_its_source_is_reusable)
{
    size_t bytes = 32 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    memset(host, 1, bytes);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    memset(host, 2, bytes);
    CUstream stream = (CUstream)0x55;
    struct letting_go what = {stream, 20000};
    pthread_t thread;
    fake_hold(stream);
    pthread_create(&thread, NULL, let_go_later, &what);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, stream, true)));
    memset(host, 3, bytes);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < bytes; i += 997) cr_assert_eq(device[i], 2);
}

Test(hostmem_copy, async_copy_to_the_host_returns_with_the_data)
{
    size_t bytes = 16 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    memset(device, 4, bytes);
    for (int round = 0; round < 3; round++) {
        CUstream stream = (CUstream)0x66;
        struct letting_go what = {stream, 10000};
        pthread_t thread;
        fake_hold(stream);
        pthread_create(&thread, NULL, let_go_later, &what);
        size_t length = round == 2 ? 4 : bytes;
        memset(host, 0, length);
        cr_assert(do_copy(flat(COPY_D2H, device, host, length, stream, true)));
        cr_assert_eq(host[0], 4);
        cr_assert_eq(host[length - 1], 4);
        pthread_join(thread, NULL);
    }
}

Test(hostmem_copy, pitched_copies_across_pieces_arrive)
{
    size_t bytes = 48 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    char *expected = malloc(bytes);
    for (int registered = 0; registered < 2; registered++) {
        for (int async = 0; async < 2; async++) {
            fill(host, bytes, 3);
            struct copy_request request =
                flat(COPY_H2D, device, host + 100, 10007, async ? (CUstream)0x44 : CU_STREAM_LEGACY, async);
            request.height = 300;
            request.depth = 9;
            request.host_pitch = 12288;
            request.host_slice = 12288 * 320;
            request.device_pitch = 10240;
            request.device_slice = 10240 * 300;
            memset(device, 0, bytes);
            memset(expected, 0, bytes);
            for (size_t z = 0; z < 9; z++)
                for (size_t y = 0; y < 300; y++)
                    memcpy(expected + z * request.device_slice + y * 10240,
                           host + 100 + z * request.host_slice + y * 12288, 10007);
            cr_assert(do_copy(request));
            cr_assert(memcmp(device, expected, bytes) == 0);
            request.direction = COPY_D2H;
            memset(host, 0, bytes);
            cr_assert(do_copy(request));
            for (size_t z = 0; z < 9; z++)
                for (size_t y = 0; y < 300; y++)
                    cr_assert(memcmp(expected + z * request.device_slice + y * 10240,
                                     host + 100 + z * request.host_slice + y * 12288, 10007) == 0);
        }
        cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    }
}

Test(hostmem_copy, a_refused_registration_means_the_native_path_and_a_note)
{
    size_t bytes = 16 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    fill(host, bytes, 1);
    fake_refuse_registration(-1, CUDA_ERROR_NOT_SUPPORTED);
    for (int i = 0; i < 3; i++) {
        memset(device, 0, bytes);
        cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
        cr_assert(memcmp(host, device, bytes) == 0);
    }
    cr_assert_eq(fake_registered_bytes(), 0);
    cr_assert(stub_last_note[0]);
}

Test(hostmem_copy, every_registration_in_turn_may_fail)
{
    size_t bytes = 30 * MIB;
    char *device = fake_device(bytes);
    CUresult codes[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CUDA_ERROR_INVALID_VALUE};
    for (int count = 1; count < 9; count++) {
        char *host = hostmem_block_take(bytes, 16, false);
        fill(host, bytes, (unsigned)count);
        fake_refuse_registration(count, codes[count % 3]);
        memset(device, 0, bytes);
        cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, (CUstream)0x31, count & 1)));
        cr_assert(memcmp(host, device, bytes) == 0);
        fake_refuse_registration(0, CUDA_SUCCESS);
        cr_assert(hostmem_block_give(host));
    }
}

Test(hostmem_copy, the_limit_is_kept_and_cached_blocks_make_room)
{
    stub_options(64 * MIB, 0);
    size_t bytes = 24 * MIB;
    char *device = fake_device(bytes);
    for (int i = 0; i < 20; i++) {
        char *host = hostmem_block_take(bytes + (size_t)i * 4 * MIB, 16, false);
        fill(host, bytes, (unsigned)i);
        cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
        cr_assert(memcmp(host, device, bytes) == 0);
        cr_assert_leq(fake_registered_bytes(), 64 * MIB);
        if (i % 3) cr_assert(hostmem_block_give(host));
    }
    hostmem_trim();
}

Test(hostmem_copy, the_block_freed_longest_ago_goes_first)
{
    stub_options(64 * MIB, 0);
    size_t bytes = 16 * MIB;
    char *blocks[3], *device = fake_device(64 * MIB);
    for (int i = 0; i < 3; i++) {
        blocks[i] = hostmem_block_take(bytes, 16, false);
        memset(blocks[i], i, bytes);
        cr_assert(do_copy(flat(COPY_H2D, device, blocks[i], bytes, CU_STREAM_LEGACY, false)));
    }
    cr_assert(hostmem_block_give(blocks[1]));
    cr_assert(hostmem_block_give(blocks[0]));
    cr_assert(hostmem_block_give(blocks[2]));
    char *larger = hostmem_block_take(24 * MIB, 16, false);
    memset(larger, 7, 24 * MIB);
    cr_assert(do_copy(flat(COPY_H2D, device, larger, 24 * MIB, CU_STREAM_LEGACY, false)));
    cr_assert(!fake_is_registered(blocks[1]));
    cr_assert(fake_is_registered(blocks[2]));
    hostmem_trim();
}

Test(hostmem_copy, what_is_cached_goes_when_the_machine_has_less_to_give)
{
    size_t bytes = 32 * MIB;
    char *blocks[4], *device = fake_device(bytes);
    for (int i = 0; i < 4; i++) {
        blocks[i] = hostmem_block_take(bytes, 16, false);
        memset(blocks[i], i, bytes);
        cr_assert(do_copy(flat(COPY_H2D, device, blocks[i], bytes, CU_STREAM_LEGACY, false)));
    }
    for (int i = 0; i < 3; i++) cr_assert(hostmem_block_give(blocks[i]));
    cr_assert_geq(fake_registered_bytes(), 128 * MIB);
    stub_options(48 * MIB, 0);
    usleep(150000); /* the machine is asked ten times a second */
    cr_assert(do_copy(flat(COPY_H2D, device, blocks[3], bytes, CU_STREAM_LEGACY, false)));
    cr_assert_leq(fake_registered_bytes(), 48 * MIB);
    cr_assert_eq(device[bytes - 1], 3);
}

Test(hostmem_copy, an_allocation_that_cannot_be_had_empties_the_cache_first)
{
    size_t bytes = 32 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    memset(host, 5, bytes);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    cr_assert(hostmem_block_give(host));
    cr_assert_gt(fake_registered_bytes(), 0);
    char *far_too_much = hostmem_block_take((size_t)500 << 30, 16, false);
    if (far_too_much) /* a machine that gives it */
        cr_assert(hostmem_block_give(far_too_much));
    else
        cr_assert_eq(fake_registered_bytes(), 0);
}

Test(hostmem_copy, a_pitched_async_copy_up_to_2_mib_returns_behind_a_busy_stream_with_its_source_reusable)
{
    size_t bytes = 32 * MIB, rows = 400, width = 5000, pitch = 6000;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    fill(host, bytes, 1);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    char *expected = malloc(bytes);
    memcpy(expected, host, bytes);
    CUstream stream = (CUstream)0x31;
    struct copy_request request = flat(COPY_H2D, device, host + 7, width, stream, true);
    request.height = rows;
    request.host_pitch = pitch;
    request.device_pitch = width;
    fake_hold(stream);
    cr_assert(do_copy(request)); /* would never return if it waited */
    memset(host, 0, bytes);
    fake_let_go(stream);
    for (size_t y = 0; y < rows; y++) cr_assert(memcmp(device + y * width, expected + 7 + y * pitch, width) == 0);
}

Test(hostmem_copy, freed_blocks_come_back_registered_and_calloc_of_one_is_zero)
{
    size_t bytes = 64 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    memset(host, 5, bytes);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    int before = fake_registrations();
    for (int i = 0; i < 10; i++) {
        cr_assert(hostmem_block_give(host));
        char *again = hostmem_block_take(bytes, 16, i & 1);
        cr_assert_eq(again, host);
        if (i & 1)
            for (size_t k = 0; k < bytes; k += 4096) cr_assert_eq(again[k], 0);
        memset(again, i + 1, bytes);
        cr_assert(do_copy(flat(COPY_H2D, device, again, bytes, CU_STREAM_LEGACY, false)));
        cr_assert_eq(device[bytes - 1], i + 1);
    }
    cr_assert_eq(fake_registrations(), before);
    cr_assert(hostmem_block_give(host));
    cr_assert(hostmem_trim());
    cr_assert_eq(fake_registered_bytes(), 0);
}

Test(hostmem_copy, the_programs_own_registration_succeeds_and_ours_comes_back_after_it)
{
    size_t bytes = 32 * MIB;
    char *host = hostmem_block_take(bytes, 4096, false), *device = fake_device(bytes);
    fill(host, bytes, 1);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    cr_assert(hostmem_hides(host + 100));
    hostmem_program_registers(host, 8 * MIB);
    cr_assert(!hostmem_hides(host + 100));
    cr_assert_eq(shim.real.cuMemHostRegister_v2(host, 8 * MIB, 0), CUDA_SUCCESS);
    cr_assert(!hostmem_hides(host + 100));
    cr_assert_eq(shim.real.cuMemHostUnregister(host), CUDA_SUCCESS);
    hostmem_program_unregistered(host);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    cr_assert(hostmem_hides(host + 100));
}

Test(hostmem_copy, discarding_or_protecting_a_part_drops_its_registration)
{
    size_t bytes = 32 * MIB;
    char *host = hostmem_block_take(bytes, 4096, false), *device = fake_device(bytes);
    fill(host, bytes, 1);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    hostmem_mapping_changes(host + 8 * MIB, 4096, HOSTMEM_DISCARDS);
    madvise(host + 8 * MIB, 4096, MADV_DONTNEED);
    cr_assert(!fake_is_registered(host + 8 * MIB));
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    cr_assert(memcmp(host, device, bytes) == 0);
    cr_assert(hostmem_unmap(host + 12 * MIB, 4096));
    cr_assert(!fake_is_registered(host + 12 * MIB));
    cr_assert(hostmem_block_give(host));
    cr_assert_eq(fake_registered_bytes(), 0, "an altered block is not kept");
}

Test(hostmem_copy, copies_that_need_a_block_unregistered_do_not_pin_and_unpin_it_for_ever)
{
    size_t bytes = 32 * MIB;
    char *host = hostmem_block_take(bytes, 4096, false), *device = fake_device(bytes);
    for (int i = 0; i < 20; i++) {
        fill(host, bytes, (unsigned)i);
        cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
        cr_assert(memcmp(host, device, bytes) == 0);
        hostmem_make_native(host, bytes, false);
        cr_assert(!fake_is_registered(host));
    }
    cr_assert_leq(fake_unregistrations(), 3 * 8);
    cr_assert(hostmem_block_give(host));
}

static CUresult not_permitted(CUcontext context)
{
    (void)context;
    return CUDA_ERROR_NOT_PERMITTED;
}

Test(hostmem_copy, a_registration_that_cannot_be_dropped_inside_a_host_function_stays_known)
{
    size_t bytes = 16 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    shim.real.cuCtxPushCurrent_v2 = not_permitted;
    hostmem_mapping_changes(host, bytes, HOSTMEM_DISCARDS);
    char *resized = hostmem_block_resize(host, 5 * MIB);
    cr_assert_eq(resized, host);
    cr_assert(fake_is_registered(host) && fake_is_registered(host + bytes - 1));
    cr_assert(hostmem_hides(host) && hostmem_hides(host + bytes - 1), "else the driver's answer for it would be seen");
    cr_assert(hostmem_block_give(host));
    cr_assert_geq(fake_registered_bytes(), bytes);
    fake_start();
}

Test(hostmem_copy, shrinking_and_trimming_do_not_wait_for_a_busy_gpu)
{
    size_t bytes = 16 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    stub_gpu_busy = true;
    cr_assert_eq(hostmem_block_resize(host, 5 * MIB), host);
    cr_assert(hostmem_block_give(host));
    stub_options(17 * MIB, 2);
    usleep(150000); /* the limit is read again after 100 ms */
    char *other = hostmem_block_take(40 * MIB, 16, false);
    cr_assert(do_copy(flat(COPY_H2D, device, other, bytes, CU_STREAM_LEGACY, false)));
    cr_assert_eq(fake_unregistrations(), 0);
    stub_gpu_busy = false;
    cr_assert(do_copy(flat(COPY_H2D, device, other, bytes, CU_STREAM_LEGACY, false)));
    cr_assert_gt(fake_unregistrations(), 0);
}

static struct copy_request meanwhile;
static CUresult (*current_before)(CUcontext *);
static CUresult current_and_copy(CUcontext *context)
{
    shim.real.cuCtxGetCurrent = current_before;
    cr_assert(do_copy(meanwhile));
    return current_before(context);
}

Test(hostmem_copy, a_copy_across_pieces_is_right_when_another_registers_one_of_them_meanwhile)
{
    size_t bytes = 17 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    uintptr_t boundary = ((uintptr_t)host & ~(2 * MIB - 1)) + 8 * MIB;
    meanwhile = flat(COPY_H2D, device, host, 6 * MIB, CU_STREAM_LEGACY, false);
    current_before = shim.real.cuCtxGetCurrent;
    shim.real.cuCtxGetCurrent = current_and_copy;
    fill(host, bytes, 3);
    cr_assert(do_copy(flat(COPY_H2D, device, (char *)boundary - 1000, 2000, (CUstream)0x77, true)));
    cr_assert_gt(fake_registrations(), 0);
    cr_assert(memcmp(device, (char *)boundary - 1000, 2000) == 0);
}

static CUresult query_refused(CUevent event)
{
    (void)event;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

Test(hostmem_copy, a_staged_piece_is_not_used_again_when_its_event_cannot_be_asked)
{
    size_t bytes = 4 * MIB, part = 40000;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    fill(host, bytes, 7);
    fake_hold((CUstream)0x77);
    shim.real.cuEventQuery = query_refused;
    for (size_t at = 0; at < 10 * part; at += part)
        cr_assert(do_copy(flat(COPY_H2D, device + at, host + at, part, (CUstream)0x77, true)));
    fake_let_go((CUstream)0x77);
    cr_assert(memcmp(host, device, 10 * part) == 0);
}

static CUstreamCaptureMode capture_mode;
static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
static CUresult synchronize_during_capture(CUstream stream)
{
    (void)stream;
    return capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

Test(hostmem_copy, a_capture_that_another_thread_begins_meanwhile_does_no_harm)
{
    size_t bytes = 16 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    shim.real.cuThreadExchangeStreamCaptureMode = exchange_mode;
    shim.real.cuStreamSynchronize = synchronize_during_capture;
    fill(host, bytes, 5);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, (CUstream)0x77, true)));
    cr_assert(memcmp(host, device, bytes) == 0);
    cr_assert_eq(capture_mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

Test(hostmem_copy, a_context_that_goes_takes_its_registrations_along)
{
    size_t bytes = 32 * MIB;
    char *host = hostmem_block_take(bytes, 4096, false), *device = fake_device(bytes);
    fill(host, bytes, 1);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    cr_assert(do_copy(flat(COPY_H2D, device, host, 4096, (CUstream)0x99, true)));
    hostmem_context_gone((CUcontext)0x1000);
    for (size_t at = 0; at < bytes; at += MIB) cr_assert(!fake_is_registered(host + at));
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    cr_assert(memcmp(host, device, bytes) == 0);
}

Test(hostmem_copy, a_device_range_too_short_gives_the_drivers_error_and_copies_nothing)
{
    size_t bytes = 32 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(16 * MIB);
    memset(host, 9, bytes);
    CUresult result = CUDA_SUCCESS;
    struct copy_request request = flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false);
    bool done = hostmem_copy(&request, &result);
    cr_assert(!done || result == CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < 16 * MIB; i += 4096) cr_assert_eq(device[i], 0);
}

Test(hostmem_copy, a_child_has_no_registration_and_can_use_and_free_the_block)
{
    size_t bytes = 32 * MIB;
    char *host = hostmem_block_take(bytes, 16, false), *device = fake_device(bytes);
    memset(host, 9, bytes);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    hostmem_before_fork();
    pid_t child = fork();
    if (!child) {
        hostmem_after_fork_child();
        if (hostmem_hides(host)) _exit(1);
        for (size_t i = 0; i < bytes; i += 4096)
            if (host[i] != 9) _exit(2);
        memset(host, 1, bytes);
        if (!hostmem_block_give(host)) _exit(3);
        if (fake_registered_bytes()) _exit(4);
        char *more = hostmem_block_take(bytes, 16, true);
        if (!more || more[0]) _exit(5);
        _exit(0);
    }
    hostmem_after_fork_parent();
    int status;
    waitpid(child, &status, 0);
    cr_assert_eq(status, 0);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    cr_assert(hostmem_hides(host));
    cr_assert_eq(device[0], 9);
}
