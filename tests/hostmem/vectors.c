/* Blocks that grow by realloc, mapping calls of the program on parts of its blocks, and threads that hand blocks to
 * each other. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)
#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "vectors: %s\n", #what);                                                                   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static char *_Atomic boxes[16];
static void *exchange(void *argument)
{
    unsigned seed = (unsigned)(size_t)argument;
    for (int i = 0; i < 3000; i++) {
        size_t bytes = (size_t)(rand_r(&seed) % 12 + 1) * MIB;
        char *mine = malloc(bytes);
        mine[0] = mine[bytes - 1] = 'x';
        char *other = __atomic_exchange_n(&boxes[rand_r(&seed) % 16], mine, __ATOMIC_ACQ_REL);
        if (other) CHECK(other[0] == 'x');
        free(other);
    }
    return NULL;
}

int main(void)
{
    unsigned *vector = NULL;
    size_t count = 0, capacity = 0;
    for (; count < 40 * MIB; count++) {
        if (count == capacity)
            CHECK(vector = realloc(vector, (capacity = capacity + capacity / 2 + 1000) * sizeof *vector));
        vector[count] = (unsigned)count;
    }
    for (size_t i = 0; i < count; i++) CHECK(vector[i] == i);
    while (count > 1000) {
        CHECK(vector = realloc(vector, (count = count / 3) * sizeof *vector));
        CHECK(vector[count - 1] == count - 1);
    }
    free(vector);

    for (int i = 0; i < 10; i++) {
        char *block = aligned_alloc(4096, 32 * MIB);
        memset(block, 7, 32 * MIB);
        CHECK(madvise(block + 4 * MIB, 8 * MIB, MADV_DONTNEED) == 0 && block[5 * MIB] == 0);
        CHECK(mprotect(block + 16 * MIB, 4096, PROT_READ) == 0);
        CHECK(block[16 * MIB] == 7 && block[20 * MIB] == 7);
        if (i & 1) {
            CHECK(munmap(block + 24 * MIB, 4 * MIB) == 0);
            char *moved = mremap(block + 12 * MIB, 2 * MIB, 2 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED,
                                 mmap(NULL, 2 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
            CHECK(moved != MAP_FAILED && moved[0] == 7);
            munmap(moved, 2 * MIB);
        }
        free(block);
        char *next = malloc(32 * MIB);
        memset(next, 1, 32 * MIB);
        free(next);
    }
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, exchange, (void *)(i + 1));
    for (size_t i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 16; i++) free(boxes[i]);
    return 0;
}
