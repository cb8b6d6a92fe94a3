/* Another allocator to preload: a bump allocator with a header, which aborts on blocks that are not its own. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>

#define MARK 0x0ddba110cull
struct header {
    size_t bytes;
    uint64_t mark;
};
static _Atomic(char *) at;
static void *take(size_t bytes, size_t alignment)
{
    static _Atomic int once;
    int zero = 0;
    if (!at && atomic_compare_exchange_strong(&once, &zero, 1))
        at = mmap(NULL, (size_t)1 << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    while (!at) continue;
    if (bytes > (size_t)1 << 32) return NULL;
    size_t span = (bytes + sizeof(struct header) + alignment + 31) & ~(size_t)15;
    char *start = atomic_fetch_add(&at, span);
    char *block = (char *)(((uintptr_t)start + sizeof(struct header) + alignment - 1) & ~(uintptr_t)(alignment - 1));
    ((struct header *)block)[-1] = (struct header){bytes, MARK};
    return block;
}
static struct header *check(void *block)
{
    struct header *header = (struct header *)block - 1;
    if (header->mark != MARK) abort();
    return header;
}
void *malloc(size_t bytes) { return take(bytes, 16); }
void *calloc(size_t count, size_t size) { return take(count * size, 16); }
void free(void *block)
{
    if (block) check(block);
}
void *realloc(void *block, size_t bytes)
{
    void *fresh = take(bytes, 16);
    if (!block || !fresh) return fresh;
    size_t had = check(block)->bytes;
    return memcpy(fresh, block, had < bytes ? had : bytes);
}
void *memalign(size_t alignment, size_t bytes) { return take(bytes, alignment < 16 ? 16 : alignment); }
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    return (*block = memalign(alignment, bytes)) ? 0 : 12;
}
void *valloc(size_t bytes) { return memalign(4096, bytes); }
void *pvalloc(size_t bytes) { return memalign(4096, bytes); }
