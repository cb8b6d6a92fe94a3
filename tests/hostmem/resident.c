/* Resident memory: what is freed goes back, what is not touched does not become resident. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
static size_t resident(void)
{
    unsigned long total, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu %lu", &total, &pages) != 2) exit(9);
    fclose(file);
    return pages * 4096 / MIB;
}
int main(void)
{
    size_t before = resident();
    for (int i = 0; i < 5; i++) {
        char *block = malloc(300 * MIB);
        memset(block, 1, 300 * MIB);
        if (resident() < before + 290) return fprintf(stderr, "not resident when touched\n"), 1;
        block = realloc(block, 40 * MIB);
        if (resident() > before + 60) return fprintf(stderr, "a shrunk block keeps %zu MiB\n", resident() - before), 1;
        free(block);
        if (resident() > before + 10) return fprintf(stderr, "%zu MiB stay after free\n", resident() - before), 1;
    }
    char *sparse = calloc(10240, MIB);
    if (!sparse) return fprintf(stderr, "no 10 GiB\n"), 1;
    for (size_t i = 0; i < 10240; i += 100) sparse[i * MIB] = 1;
    if (resident() > before + 210) return fprintf(stderr, "a sparse block has %zu MiB\n", resident() - before), 1;
    sparse = realloc(sparse, 12288 * MIB);
    if (!sparse || resident() > before + 210 || sparse[100 * MIB] != 1 || sparse[12000 * MIB])
        return fprintf(stderr, "sparse realloc\n"), 1;
    free(sparse);
    /* Blocks of a size that glibc would keep are not faulted in anew each time. */
    char *kept = malloc(8 * MIB);
    memset(kept, 1, 8 * MIB);
    free(kept);
    for (int i = 0; i < 100; i++) {
        kept = malloc(8 * MIB);
        memset(kept, i, 8 * MIB);
        free(kept);
    }
    return resident() > before + 74 ? (fprintf(stderr, "%zu MiB kept\n", resident() - before), 1) : 0;
}
