/* Large host blocks: the malloc family, and pageable copies from and to every kind of memory. */
#include "programs.h"
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>

enum { MIB = 1 << 20 };

static bool filled_with(const unsigned char *bytes, size_t count, int value)
{
    return !count || (bytes[0] == value && !memcmp(bytes, bytes + 1, count - 1));
}

SNIPPET(malloc_family, "", "every allocator of the family at small and large sizes: alignment, contents, usable size")
{
    static const size_t sizes[] = {0, 1, 100, 4096, 100000, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 9 * MIB + 123};
    for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
        const size_t n = sizes[k];
        unsigned char *p = malloc(n), *q = calloc(1, n), *aligned = NULL;
        int wrong = !p || !q || (uintptr_t)p % 16 || !filled_with(q, n, 0);
        wrong += malloc_usable_size(p) < n || malloc_usable_size(q) < n || malloc_usable_size(NULL) != 0;
        memset(p, 1, malloc_usable_size(p));
        memset(q, 2, malloc_usable_size(q));
        p = realloc(p, n * 2 + 1);
        wrong += !filled_with(p, n, 1);
        memset(p, 3, n * 2 + 1);
        p = realloc(p, n / 3 + 1);
        wrong += !filled_with(p, n / 3 + 1, 3);
        q = reallocarray(q, 3, n + 1);
        wrong += !filled_with(q, n, 2);
        free(p);
        free(q);
        for (size_t alignment = 16; alignment <= 4 * MIB; alignment *= 8) {
            unsigned char *other = aligned_alloc(alignment, (n + alignment - 1) / alignment * alignment);
            wrong += posix_memalign((void **)&aligned, alignment, n) != 0 || (uintptr_t)aligned % alignment || !other ||
                     (uintptr_t)other % alignment;
            memset(aligned, 4, n);
            memset(other, 5, n);
            wrong += !filled_with(aligned, n, 4);
            free(other);
            aligned = realloc(aligned, n + 5000);
            wrong += !filled_with(aligned, n, 4);
            free(aligned);
            aligned = memalign(alignment, n + 1);
            wrong += !aligned || (uintptr_t)aligned % alignment;
            free(aligned);
        }
        aligned = valloc(n + 1);
        wrong += !aligned || (uintptr_t)aligned % 4096;
        free(aligned);
        aligned = pvalloc(n + 1);
        wrong += !aligned || (uintptr_t)aligned % 4096 || malloc_usable_size(aligned) < (n + 4096) / 4096 * 4096;
        free(aligned);
        expect(!wrong, "%zu bytes", n);
    }
    volatile size_t huge = (size_t)1 << 60;
    expect(!malloc(huge) && !calloc(huge, 32) && !reallocarray(NULL, huge, 32), "what cannot be served is null");
    free(NULL);
    expect(posix_memalign((void **)&(void *){NULL}, 24, 8 * MIB) != 0, "a bad alignment is refused");
}

SNIPPET(malloc_random, "", "20 000 random allocations, reallocations and frees with copies between")
{
    enum { LIVE = 24 };
    unsigned char *block[LIVE] = {0}, *device;
    size_t bytes[LIVE] = {0};
    uint64_t random = 11;
    int wrong = 0;
    MUST(cudaMalloc((void **)&device, 16 * MIB));
    for (int step = 0; step < 20000; step++) {
        const int i = random_next(&random) % LIVE;
        const unsigned choice = random_next(&random) % 100;
        const size_t n = 1 + (choice % 10 ? random_next(&random) % 20000 : random_next(&random) % (12 * MIB));
        if (!block[i]) {
            block[i] = choice % 3 ? malloc(n) : calloc(1, n);
            wrong += choice % 3 == 0 && (block[i][0] || block[i][n / 2] || block[i][n - 1]);
            bytes[i] = n;
        } else {
            wrong += block[i][0] != i || block[i][bytes[i] - 1] != i || block[i][bytes[i] / 2] != i;
            if (choice < 40) {
                block[i] = realloc(block[i], n);
                wrong += block[i][0] != i;
                bytes[i] = n;
            } else if (choice < 60 && bytes[i] > MIB) {
                MUST(cudaMemcpy(device, block[i], bytes[i], cudaMemcpyHostToDevice));
                block[i][bytes[i] / 2] = 99;
                MUST(cudaMemcpy(block[i], device, bytes[i], cudaMemcpyDeviceToHost));
                wrong += block[i][bytes[i] / 2] != i;
            } else {
                free(block[i]);
                block[i] = NULL;
                continue;
            }
        }
        block[i][0] = block[i][bytes[i] - 1] = block[i][bytes[i] / 2] = (unsigned char)i;
    }
    expect(!wrong, "20000 steps, %d wrong", wrong);
    for (int i = 0; i < LIVE; i++) free(block[i]);
    MUST(cudaFree(device));
}

static void *allocate_blocks(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    uintptr_t wrong = 0;
    for (int round = 0; round < 200; round++) {
        const size_t n = MIB + random_next(&random) % (8 * MIB);
        unsigned char *p = malloc(n), value = (unsigned char)round;
        p[0] = p[n / 2] = p[n - 1] = value;
        p = realloc(p, n + MIB);
        wrong += p[0] != value || p[n / 2] != value || p[n - 1] != value;
        free(p);
    }
    return (void *)wrong;
}

SNIPPET(malloc_threads, "", "eight threads with large blocks of their own")
{
    pthread_t thread[8];
    MUST(cudaFree(0));
    for (uintptr_t t = 0; t < 8; t++) pthread_create(&thread[t], NULL, allocate_blocks, (void *)(t + 1));
    for (int t = 0; t < 8; t++) {
        void *wrong;
        pthread_join(thread[t], &wrong);
        expect(!wrong, "thread %d", t);
    }
}

/* Uploads and downloads through this memory, whole and in odd pieces, synchronous and not. */
static void copy_through(unsigned char *host, size_t bytes, bool writable, const char *name)
{
    unsigned char *device, *back = malloc(bytes);
    cudaStream_t stream;
    const uint64_t hash = hash_bytes(host, bytes);
    MUST(cudaMalloc((void **)&device, bytes));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(back, device, bytes, cudaMemcpyDeviceToHost));
    expect(hash_bytes(back, bytes) == hash, "%s, upload", name);
    MUST(cudaMemset(device, 0, bytes));
    const size_t first = bytes / 3 + 1, second = bytes - first;
    MUST(cudaMemcpyAsync(device, host, first, cudaMemcpyHostToDevice, 0));
    MUST(cudaMemcpyAsync(device + first, host + first, second, cudaMemcpyHostToDevice, 0));
    MUST(cudaMemcpy(back, device, bytes, cudaMemcpyDeviceToHost));
    expect(hash_bytes(back, bytes) == hash, "%s, in pieces", name);
    if (writable) {
        memset(host, 0, bytes);
        MUST(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
        expect(hash_bytes(host, bytes) == hash, "%s, asynchronous download is complete", name);
        memset(host, 0, bytes);
        MUST(cudaMemcpy2D(host, bytes / 16, device, bytes / 16, bytes / 16, 16, cudaMemcpyDeviceToHost));
        expect(hash_bytes(host, bytes / 16 * 16) == hash_bytes(back, bytes / 16 * 16), "%s, 2D download", name);
        MUST(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
        memset(host, 1, bytes);
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaMemcpy(host, device, bytes / 16 * 16, cudaMemcpyDeviceToHost));
        expect(hash_bytes(host, bytes / 16 * 16) == hash_bytes(back, bytes / 16 * 16), "%s, source reused", name);
    }
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(device));
    free(back);
}

static unsigned char *pattern(unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) memory[i] = (unsigned char)(i * 31 >> 4);
    return memory;
}

SNIPPET(pageable_copies, "", "large copies from and to heap, mappings, files, stacks and static memory")
{
    static unsigned char fixed[3 * MIB + 5];
    unsigned char stack[2 * MIB], *heap = pattern(malloc(20 * MIB + 77), 20 * MIB + 77);
    char path[] = "/tmp/programs-XXXXXX";
    copy_through(heap, 20 * MIB + 77, true, "heap block");
    copy_through(heap + 5 * MIB + 3, 6 * MIB, true, "inside a heap block");
    unsigned char *early = pattern(malloc(2 * MIB), 2 * MIB);
    copy_through(early, 2 * MIB, true, "smaller heap block");
    unsigned char *map = mmap(NULL, 12 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    copy_through(pattern(map, 12 * MIB), 12 * MIB, true, "anonymous mapping");
    copy_through(pattern(fixed, sizeof(fixed)), sizeof(fixed), true, "static memory");
    copy_through(pattern(stack, sizeof(stack)), sizeof(stack), true, "stack");
    int file = mkstemp(path);
    if (write(file, heap, 10 * MIB) != 10 * MIB) exit(1);
    unsigned char *mapped = mmap(NULL, 10 * MIB, PROT_READ, MAP_PRIVATE, file, 0);
    copy_through(mapped, 10 * MIB, false, "mapped file");
    unsigned char *shared = mmap(NULL, 10 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    copy_through(shared, 10 * MIB, true, "shared mapping of a file");
    munmap(mapped, 10 * MIB);
    munmap(shared, 10 * MIB);
    munmap(map, 12 * MIB);
    close(file);
    unlink(path);
    free(early);
    free(heap);
}

SNIPPET(block_recycled, "", "blocks freed and taken again between copies never show old bytes")
{
    unsigned char *device, *back = malloc(8 * MIB);
    int wrong = 0;
    MUST(cudaMalloc((void **)&device, 8 * MIB));
    for (int round = 0; round < 30; round++) {
        unsigned char *block = round % 2 ? malloc(8 * MIB) : calloc(1, 8 * MIB);
        if (round % 2 == 0) wrong += !filled_with(block, 8 * MIB, 0);
        memset(block, round, 8 * MIB);
        MUST(cudaMemcpyAsync(device, block, 8 * MIB, cudaMemcpyHostToDevice, 0));
        free(block);
        block = malloc(8 * MIB);
        memset(block, 255, 8 * MIB);
        MUST(cudaMemcpy(back, device, 8 * MIB, cudaMemcpyDeviceToHost));
        wrong += !filled_with(back, 8 * MIB, round);
        free(block);
    }
    expect(!wrong, "30 rounds");
    MUST(cudaFree(device));
    free(back);
}

SNIPPET(block_remapped, "", "madvise, mprotect and munmap of parts of a large block")
{
    unsigned char *block = malloc(16 * MIB), *device, *page;
    MUST(cudaMalloc((void **)&device, 16 * MIB));
    memset(block, 1, 16 * MIB);
    MUST(cudaMemcpy(device, block, 16 * MIB, cudaMemcpyHostToDevice));
    page = (unsigned char *)(((uintptr_t)block + 5 * MIB) & ~4095ul);
    printf("madvise %d\n", madvise(page, MIB, MADV_DONTNEED));
    expect(filled_with(page, MIB, 0), "dropped pages are zero");
    MUST(cudaMemcpy(device, block, 16 * MIB, cudaMemcpyHostToDevice));
    memset(block, 2, 16 * MIB);
    MUST(cudaMemcpy(block, device, 16 * MIB, cudaMemcpyDeviceToHost));
    expect(block[0] == 1 && filled_with(page, MIB, 0) && page[MIB] == 1, "the device saw the zeros");
    printf("mprotect %d\n", mprotect(page, MIB, PROT_READ));
    MUST(cudaMemcpy(device, block, 16 * MIB, cudaMemcpyHostToDevice));
    printf("mprotect %d\n", mprotect(page, MIB, PROT_READ | PROT_WRITE));
    memset(block, 3, 16 * MIB);
    MUST(cudaMemcpy(device, block, 16 * MIB, cudaMemcpyHostToDevice));
    printf("%016llx\n", (unsigned long long)hash_device(device, 16 * MIB));
    MUST(cudaFree(device));
    free(block);
}

SNIPPET(block_mapped_over, "", "mmap and mremap put other memory over parts of a large block")
{
    unsigned char *block = aligned_alloc(4096, 16 * MIB), *device, *page = block + 5 * MIB, *other;
    MUST(cudaMalloc((void **)&device, 16 * MIB));
    memset(block, 1, 16 * MIB);
    MUST(cudaMemcpy(device, block, 16 * MIB, cudaMemcpyHostToDevice));
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    expect(mmap(page, MIB, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0) == page, "mmap");
    memset(page, 4, MIB);
    other = mmap(NULL, MIB, PROT_READ | PROT_WRITE, flags, -1, 0);
    memset(other, 5, MIB);
    MUST(cudaMemcpy(device, block, 16 * MIB, cudaMemcpyHostToDevice));
    printf("%016llx\n", (unsigned long long)hash_device(device, 16 * MIB));
    expect(mremap(other, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, page + 4 * MIB) == page + 4 * MIB, "mremap");
    MUST(cudaMemcpy(device, block, 16 * MIB, cudaMemcpyHostToDevice));
    printf("%016llx\n", (unsigned long long)hash_device(device, 16 * MIB));
    MUST(cudaMemset(device, 9, 16 * MIB));
    MUST(cudaMemcpy(block, device, 16 * MIB, cudaMemcpyDeviceToHost));
    expect(filled_with(block, 16 * MIB, 9), "down");
    MUST(cudaFree(device));
    free(block);
}

/* What a copy from memory that is not there ends with: an error, or a signal, as bare. */
static void copy_from(unsigned char *memory, size_t bytes)
{
    void *device;
    MUST(cudaMalloc(&device, bytes));
    cudaError_t status = cudaMemcpy(device, memory, bytes, cudaMemcpyHostToDevice);
    printf("%s\n", cudaGetErrorName(status));
    fflush(stdout);
    _exit(status != cudaSuccess);
}

SNIPPET(copy_truncated_file, "exit=any", "an upload from a mapped file that has become shorter")
{
    char path[] = "/tmp/programs-XXXXXX";
    int file = mkstemp(path);
    unlink(path);
    if (ftruncate(file, 8 * MIB)) exit(1);
    unsigned char *mapped = mmap(NULL, 8 * MIB, PROT_READ, MAP_PRIVATE, file, 0);
    if (ftruncate(file, 3 * MIB)) exit(1);
    copy_from(mapped, 8 * MIB);
}

SNIPPET(copy_unreadable, "exit=any", "an upload from memory that may not be read")
{
    unsigned char *memory = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, 8 * MIB);
    mprotect(memory + 4 * MIB, 4 * MIB, PROT_NONE);
    copy_from(memory, 8 * MIB);
}

SNIPPET(copy_unmapped_tail, "", "children that copy from what is not there end as bare, and this program goes on")
{
    printf("truncated file: %d\n", run_snippet("copy_truncated_file"));
    printf("unreadable: %d\n", run_snippet("copy_unreadable"));
}
