/* Heap sort: qsort(3) may allocate. */
#ifndef SHIM_SORT_H
#define SHIM_SORT_H
#include <stddef.h>
#include <string.h>

#define SORT_ITEM_MAX 640

/* `compare` as for qsort; items of at most SORT_ITEM_MAX bytes. */
static inline void sort_items(void *items, size_t count, size_t bytes, int (*compare)(const void *a, const void *b))
{
    char *base = items, held[SORT_ITEM_MAX];
    for (size_t start = count / 2, end = count; end > 1;) {
        if (start > 0) {
            memcpy(held, base + --start * bytes, bytes);
        } else {
            end--;
            memcpy(held, base + end * bytes, bytes);
            memcpy(base + end * bytes, base, bytes);
        }
        size_t hole = start;
        for (size_t child; (child = hole * 2 + 1) < end; hole = child) {
            if (child + 1 < end && compare(base + child * bytes, base + (child + 1) * bytes) < 0) child++;
            if (compare(held, base + child * bytes) >= 0) break;
            memcpy(base + hole * bytes, base + child * bytes, bytes);
        }
        memcpy(base + hole * bytes, held, bytes);
    }
}
#endif
