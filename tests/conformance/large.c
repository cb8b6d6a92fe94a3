/* Large blocks of malloc as partners of copies, what registering accepts, calls after fork. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "operations.h"

/* A block that malloc hands out stays pageable in every answer, however often it is copied. */
void large_blocks(void)
{
    enum { LARGE = 16 << 20 };
    CUdeviceptr device;
    CUstream stream;
    MUST(d.cuMemAlloc(&device, LARGE));
    MUST(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    unsigned char *block = malloc(LARGE);
    memset(block, 1, LARGE);
    for (int round = 0; round < 3; round++) MUST(d.cuMemcpyHtoD(device, block, LARGE));
    if (question("flags of a copied block")) {
        unsigned flags = 77;
        answer("%s", error_name(d.cuMemHostGetFlags(&flags, block)));
    }
    if (question("device pointer of a copied block")) {
        CUdeviceptr pointer = 7;
        answer("%s", error_name(d.cuMemHostGetDevicePointer(&pointer, block, 0)));
    }
    ASK(d.cuMemHostUnregister(block), "unregister a copied block");
    ASK(d.cuMemFreeHost(block), "cuMemFreeHost of a copied block");
    if (question("register a copied block, again, a part, unregister, again")) {
        CUresult codes[5] = {d.cuMemHostRegister(block, LARGE, 0), d.cuMemHostRegister(block, LARGE, 0),
                             d.cuMemHostRegister(block + 8192, 4096, 0), d.cuMemHostUnregister(block),
                             d.cuMemHostUnregister(block)};
        answer("%s, %s, %s, %s, %s", error_name(codes[0]), error_name(codes[1]), error_name(codes[2]),
               error_name(codes[3]), error_name(codes[4]));
    }
    if (question("register a part of a copied block, its flags, copies in and out of it, unregister")) {
        unsigned flags = 77;
        CUresult codes[5] = {d.cuMemHostRegister(block + (1 << 20), 1 << 20, CU_MEMHOSTREGISTER_DEVICEMAP),
                             d.cuMemHostGetFlags(&flags, block + (1 << 20)),
                             d.cuMemcpyHtoD(device, block + (1 << 20), 1 << 20), d.cuMemcpyHtoD(device, block, 4 << 20),
                             d.cuMemHostUnregister(block + (1 << 20))};
        answer("%s, %s %u, %s, %s, %s", error_name(codes[0]), error_name(codes[1]), flags, error_name(codes[2]),
               error_name(codes[3]), error_name(codes[4]));
    }
    static const size_t sizes[] = {1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20};
    for (int i = 0; i < 5; i++) {
        size_t bytes = sizes[i];
        if (question("HtoDAsync of %zu MiB of a block, source overwritten after the return", bytes >> 20)) {
            unsigned char first = 0, last = 0;
            memset(block, 3, LARGE);
            if (bytes <= 2 << 20) gate_close(stream);
            MUST(d.cuMemcpyHtoDAsync(device, block, bytes, stream));
            memset(block, 4, LARGE);
            gate_open();
            MUST(d.cuStreamSynchronize(stream));
            MUST(d.cuMemcpyDtoH(&first, device, 1));
            MUST(d.cuMemcpyDtoH(&last, device + bytes - 1, 1));
            answer("device saw %d %d", first, last);
        }
        ASK_BEHIND(stream, , d.cuMemcpyHtoDAsync(device, block, bytes, stream), "HtoDAsync of %zu MiB of a block",
                   bytes >> 20);
        ASK_BEHIND(stream, , d.cuMemcpyDtoHAsync(block, device, bytes, stream), "DtoHAsync of %zu MiB into a block",
                   bytes >> 20);
        ASK_BEHIND(NULL, , d.cuMemcpyHtoD(device, block, bytes), "HtoD of %zu MiB of a block, legacy busy",
                   bytes >> 20);
        ASK_BEHIND(stream, , d.cuMemcpyHtoD(device, block, bytes), "HtoD of %zu MiB of a block, non-blocking busy",
                   bytes >> 20);
        ASK_BEHIND(NULL, , d.cuMemcpyDtoH(block, device, bytes), "DtoH of %zu MiB into a block, legacy busy",
                   bytes >> 20);
        ASK_BEHIND(NULL, , d.cuMemcpyHtoD_ptds(device, block, bytes), "HtoD_ptds of %zu MiB of a block, legacy busy",
                   bytes >> 20);
    }
    if (question("DtoHAsync of 16 MiB into a block, at the return")) {
        MUST(d.cuMemsetD8(device, 5, LARGE));
        MUST(d.cuCtxSynchronize());
        MUST(d.cuMemcpyDtoHAsync(block, device, LARGE, stream));
        answer("%d %d", block[0], block[LARGE - 1]);
    }
    if (question("freed and allocated again, copied")) {
        unsigned char last = 0;
        for (int i = 0; i < 5; i++) {
            unsigned char *other = malloc(LARGE);
            memset(other, 10 + i, LARGE);
            MUST(d.cuMemcpyHtoD(device, other, LARGE));
            free(other);
        }
        MUST(d.cuMemcpyDtoH(&last, device + LARGE - 1, 1));
        answer("%d", last);
    }
    if (question("grown by realloc after a copy")) {
        unsigned char last = 0;
        unsigned char *other = malloc(LARGE / 2);
        memset(other, 20, LARGE / 2);
        MUST(d.cuMemcpyHtoD(device, other, LARGE / 2));
        other = realloc(other, LARGE);
        MUST(d.cuMemcpyHtoD(device + LARGE / 2, other, LARGE / 2));
        MUST(d.cuMemcpyDtoH(&last, device + LARGE - 1, 1));
        answer("%d", last);
    }
}

/* What cuMemHostRegister takes. */
void register_kinds(void)
{
    static char table[65536] = {1};
    char path[] = "/tmp/conformance-XXXXXX";
    int file = mkstemp(path);
    unlink(path);
    if (ftruncate(file, 65536) != 0) return;
    int shared = memfd_create("conformance", 0);
    if (ftruncate(shared, 65536) != 0) return;
    static const struct {
        const char *name;
        int protection, flags, which;
    } maps[] = {
        {"anonymous", PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0},
        {"anonymous shared", PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, 0},
        {"anonymous read-only", PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, 0},
        {"without access", PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, 0},
        {"memfd shared", PROT_READ | PROT_WRITE, MAP_SHARED, 1},
        {"file private", PROT_READ | PROT_WRITE, MAP_PRIVATE, 2},
        {"file private read-only", PROT_READ, MAP_PRIVATE, 2},
        {"file shared", PROT_READ | PROT_WRITE, MAP_SHARED, 2},
        {"file shared read-only", PROT_READ, MAP_SHARED, 2},
    };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        for (unsigned flags = 0; flags <= CU_MEMHOSTREGISTER_READ_ONLY; flags += CU_MEMHOSTREGISTER_READ_ONLY) {
            if (!question("%s%s", maps[i].name, flags ? ", READ_ONLY" : "")) continue;
            int from = maps[i].which == 0 ? -1 : maps[i].which == 1 ? shared : file;
            void *at = mmap(NULL, 65536, maps[i].protection, maps[i].flags, from, 0);
            CUresult code = d.cuMemHostRegister(at, 65536, flags);
            answer("%s", error_name(code));
        }
    }
    ASK(d.cuMemHostRegister(table, 65536, 0), "static data");
    if (question("a block of malloc, unaligned")) {
        char *block = malloc(10000);
        answer("%s", error_name(d.cuMemHostRegister(block, 10000, 0)));
    }
    if (question("pages moved by mremap into a reservation")) {
        CUdeviceptr address;
        int count = 1, amount = 1;
        int *pages = pages_new(2 << 20);
        pages[0] = 41;
        MUST(d.cuMemAddressReserve(&address, 2 << 20, 0, 0, 0));
        void *moved = mremap(pages, 2 << 20, 2 << 20, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)address);
        CUresult code = d.cuMemHostRegister(moved, 2 << 20, CU_MEMHOSTREGISTER_DEVICEMAP);
        launch(fix.ints_add, NULL, (void *[]){&address, &count, &amount});
        MUST(d.cuCtxSynchronize());
        answer("%s, then %d", error_name(code), *(int *)address);
    }
    if (question("munmap of registered pages, then unregister")) {
        void *pages = pages_new(65536);
        MUST(d.cuMemHostRegister(pages, 65536, 0));
        munmap(pages, 65536);
        answer("%s", error_name(d.cuMemHostUnregister(pages)));
    }
    if (question("munmap of registered pages, new pages there, register")) {
        void *pages = pages_new(65536);
        MUST(d.cuMemHostRegister(pages, 65536, 0));
        munmap(pages, 65536);
        mmap(pages, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        answer("%s", error_name(d.cuMemHostRegister(pages, 65536, 0)));
    }
}

/* ------------------------------------------------------------------------------------------------ fork */

static struct operands on;
static CUdeviceptr got;
#define CALL(function, expression)                                                                                     \
    static CUresult function(void) { return expression; }
CALL(child_init, d.cuInit(0))
CALL(child_alloc, d.cuMemAlloc(&got, 256))
CALL(child_free, d.cuMemFree(on.device))
CALL(child_free_null, d.cuMemFree(0))
CALL(child_htod, d.cuMemcpyHtoD(on.device, on.pageable, 64))
CALL(child_dtoh, d.cuMemcpyDtoH(on.pageable, on.device, 64))
CALL(child_htod_zero, d.cuMemcpyHtoD(on.device, on.pageable, 0))
CALL(child_set, d.cuMemsetD8(on.device, 1, 64))
CALL(child_sync, d.cuCtxSynchronize())
CALL(child_attribute, ({
         unsigned type;
         d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, on.device);
     }))
CALL(child_range, ({
         size_t bytes;
         d.cuMemGetAddressRange(&got, &bytes, on.device);
     }))
CALL(child_host_alloc, ({
         void *p;
         d.cuMemHostAlloc(&p, 4096, 0);
     }))
CALL(child_free_host, d.cuMemFreeHost(on.pinned))
CALL(child_register, d.cuMemHostRegister(pages_new(4096), 4096, 0))
CALL(child_free_async, d.cuMemFreeAsync(on.device, NULL))

/* Calls in a forked child of a process that uses the driver; the parent's buffer is unharmed. */
void forked(void)
{
    static const struct {
        const char *name;
        CUresult (*run)(void);
    } calls[] = {{"cuInit", child_init},
                 {"cuMemAlloc", child_alloc},
                 {"cuMemFree", child_free},
                 {"cuMemFree of NULL", child_free_null},
                 {"HtoD", child_htod},
                 {"DtoH", child_dtoh},
                 {"HtoD of 0 bytes", child_htod_zero},
                 {"MemsetD8", child_set},
                 {"cuCtxSynchronize", child_sync},
                 {"MEMORY_TYPE", child_attribute},
                 {"cuMemGetAddressRange", child_range},
                 {"cuMemHostAlloc", child_host_alloc},
                 {"cuMemFreeHost", child_free_host},
                 {"cuMemHostRegister", child_register},
                 {"cuMemFreeAsync", child_free_async}};
    operands_new(&on, 256, NULL);
    int *host = on.pageable;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (!question("%s in the child", calls[i].name)) continue;
        host[0] = 33;
        MUST(d.cuMemcpyHtoD(on.device, host, 64));
        int ends[2], status = 0;
        if (pipe(ends) != 0) return;
        pid_t child = fork();
        if (child == 0) {
            alarm(3);
            CUresult code = calls[i].run();
            if (write(ends[1], &code, sizeof code) < 0) _exit(1);
            _exit(0);
        }
        CUresult code = CUDA_ERROR_UNKNOWN;
        close(ends[1]);
        bool told = read(ends[0], &code, sizeof code) == sizeof code;
        close(ends[0]);
        waitpid(child, &status, 0);
        int kept = int_at(on.device);
        if (told) {
            answer("%s, parent's buffer holds %d", error_name(code), kept);
        } else {
            answer("child died with signal %d, parent's buffer holds %d", WTERMSIG(status), kept);
        }
    }
    if (question("child exits")) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) exit(0);
        waitpid(child, &status, 0);
        answer("status %d, parent copies %s", status, error_name(d.cuMemcpyHtoD(on.device, host, 64)));
    }
}
