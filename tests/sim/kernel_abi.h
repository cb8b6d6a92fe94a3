/* What a compiled kernel file and the software driver know of each other. C and C++. */
#ifndef ZCSIM_KERNEL_ABI_H
#define ZCSIM_KERNEL_ABI_H

struct zcsim_vector {
    unsigned x, y, z;
};
/* The thread that runs now; one for each launch, updated from thread to thread. */
struct zcsim_thread {
    struct zcsim_vector thread, block, block_size, grid_size;
    void (*barrier)(void); /* returns when all threads of the block have called it or ended */
    void *dynamic_shared;
};
enum zcsim_argument_kind { ZCSIM_SCALAR, ZCSIM_POINTER, ZCSIM_STRUCTURE };
struct zcsim_argument {
    unsigned bytes, alignment;
    enum zcsim_argument_kind kind;
};
struct zcsim_kernel {
    const char *name; /* NULL ends the list */
    void (*invoke)(void **arguments);
    unsigned argument_count;
    const struct zcsim_argument *arguments;
};
/* A kernel file exports: `const struct zcsim_kernel zcsim_kernels[]` and `void zcsim_bind(struct zcsim_thread *)`,
 * which sets what the calling OS thread's kernels see. */

#endif
