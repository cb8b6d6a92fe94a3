/* Copies from and to pageable memory that is no large block of ours, on a fake driver whose streams can be held. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "shim/shim.h"
#include "tests/hostmem/copies.h"

TestSuite(hostmem_other, .init = copies_setup, .timeout = 60);

Test(hostmem_other, staged_copies_of_other_memory_arrive_in_both_directions)
{
    size_t bytes = 77 * MIB + 12345;
    char *device = fake_device(bytes);
    char *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fill(host, bytes, 1);
    for (int i = 0; i < 6; i++) {
        fill(host, bytes, (unsigned)i);
        cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, i & 1 ? CU_STREAM_LEGACY : (CUstream)0x22, !(i & 1))));
        cr_assert(memcmp(host, device, bytes) == 0);
        memset(host, 0, bytes);
        cr_assert(do_copy(flat(COPY_D2H, device, host, bytes, CU_STREAM_LEGACY, i & 1)));
        cr_assert(memcmp(host, device, bytes) == 0);
    }
    cr_assert_gt(STAT_GET(host_copies_staged), 0);
}

Test(hostmem_other, staged_pitched_copies_arrive)
{
    size_t pitch = 5000, rows = 20000, bytes = pitch * rows;
    char *device = fake_device(bytes);
    char *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t widths[] = {4999, 2500, 300};
    for (int i = 0; i < 3; i++) {
        fill(host, bytes, (unsigned)i);
        struct copy_request request = flat(COPY_H2D, device, host, widths[i], CU_STREAM_LEGACY, false);
        request.height = rows;
        request.host_pitch = request.device_pitch = pitch;
        memset(device, 0, bytes);
        CUresult result;
        cr_assert(hostmem_copy(&request, &result));
        for (size_t y = 0; y < rows; y++) cr_assert(memcmp(device + y * pitch, host + y * pitch, widths[i]) == 0);
        request.direction = COPY_D2H;
        memset(host, 0, bytes);
        cr_assert(hostmem_copy(&request, &result));
        for (size_t y = 0; y < rows; y++) {
            cr_assert(memcmp(device + y * pitch, host + y * pitch, widths[i]) == 0);
            cr_assert_eq(host[y * pitch + widths[i]], 0);
        }
    }
}

Test(hostmem_other, staged_async_source_is_reusable_on_return)
{
    size_t bytes = 40 * MIB;
    char *device = fake_device(bytes);
    char *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(host, 1, bytes);
    do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false));
    CUstream stream = (CUstream)0x23;
    struct letting_go what = {stream, 20000};
    pthread_t thread;
    fake_hold(stream);
    pthread_create(&thread, NULL, let_go_later, &what);
    memset(host, 2, bytes);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, stream, true)));
    memset(host, 3, bytes);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < bytes; i++) cr_assert_eq(device[i], 2);
}

Test(hostmem_other, a_file_cut_short_is_left_to_the_driver)
{
    size_t bytes = 40 * MIB;
    char *device = fake_device(bytes);
    char name[] = "/tmp/hostmem-XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    cr_assert_eq(ftruncate(file, (off_t)bytes), 0);
    char *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    memset(host, 6, bytes);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false)));
    cr_assert_eq(device[bytes - 1], 6);
    cr_assert_eq(ftruncate(file, (off_t)(bytes - 8 * MIB)), 0);
    munmap(host + bytes - 8 * MIB, 8 * MIB);
    memset(host, 7, bytes - 8 * MIB);
    cr_assert(do_copy(flat(COPY_H2D, device, host, bytes - 8 * MIB, CU_STREAM_LEGACY, false)));
    cr_assert_eq(device[bytes - 8 * MIB - 1], 7);
}

Test(hostmem_other, no_threads_means_no_staging)
{
    stub_options((size_t)1 << 30, 0);
    char *host = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
         *device = fake_device(64 * MIB);
    CUresult result;
    struct copy_request request = flat(COPY_H2D, device, host, 64 * MIB, CU_STREAM_LEGACY, false);
    cr_assert(!hostmem_copy(&request, &result));
}

Test(hostmem_other, memory_that_cuda_knows_is_not_staged)
{
    char *host = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
         *device = fake_device(64 * MIB);
    CUresult result;
    cr_assert_eq(shim.real.cuMemHostRegister_v2(host, 64 * MIB, 0), CUDA_SUCCESS);
    struct copy_request request = flat(COPY_H2D, device, host, 64 * MIB, CU_STREAM_LEGACY, false);
    cr_assert(!hostmem_copy(&request, &result));
}
