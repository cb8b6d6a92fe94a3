/* The exported functions of the malloc family: compare and jump. Included by libc.c only.
 *
 * No register but the flags, %rax and (in calloc) %rdx is touched, none of which carries an argument of the function it
 * jumps to. Each lies in one cache line. */
_Static_assert(offsetof(struct libc_next, min) == 0 && offsetof(struct libc_next, base) == 8 &&
                   offsetof(struct libc_next, bytes) == 16 && offsetof(struct libc_next, malloc) == 24 &&
                   offsetof(struct libc_next, free) == 32 && offsetof(struct libc_next, calloc) == 40 &&
                   offsetof(struct libc_next, realloc) == 48 &&
                   offsetof(struct libc_next, malloc_usable_size) == 24 + 9 * 8,
               "the assembly knows the order");

/* clang-format off */
#define BY_SIZE(name, size_register, offset, slow)                                                                     \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n.p2align 5\n" #name ":\n"                 \
            "\tcmpq libc_next(%rip), " size_register "\n\tjae " #slow "\n"                                             \
            "\tjmp *libc_next+" #offset "(%rip)\n.size " #name ", .-" #name "\n")

BY_SIZE(malloc, "%rdi", 24, libc_malloc_slow);
BY_SIZE(posix_memalign, "%rdx", 56, libc_posix_memalign_slow);
BY_SIZE(aligned_alloc, "%rsi", 64, libc_aligned_alloc_slow);
BY_SIZE(memalign, "%rsi", 72, libc_memalign_slow);
BY_SIZE(valloc, "%rdi", 80, libc_valloc_slow);
BY_SIZE(pvalloc, "%rdi", 88, libc_pvalloc_slow);

__asm__(".text\n.globl calloc\n.type calloc, @function\n.p2align 4\ncalloc:\n"
        "\tmovq %rdi, %rax\n\tmulq %rsi\n\tjo libc_calloc_slow\n"
        "\tcmpq libc_next(%rip), %rax\n\tjae libc_calloc_slow\n"
        "\tjmp *libc_next+40(%rip)\n.size calloc, .-calloc\n");

/* Ours, or at a page's start (NULL, early blocks, pinned memory): the slow way. */
#define BY_ADDRESS(slow)                                                                                               \
    "\tmovq %rdi, %rax\n\tsubq libc_next+8(%rip), %rax\n\tcmpq libc_next+16(%rip), %rax\n\tjb " #slow "\n"             \
    "\ttestl $0xfff, %edi\n\tjz " #slow "\n"

__asm__(".text\n.globl free\n.type free, @function\n.p2align 6\nfree:\n"
        BY_ADDRESS(libc_free_slow)
        "\tjmp *libc_next+32(%rip)\n.size free, .-free\n");

__asm__(".text\n.globl realloc\n.type realloc, @function\n.p2align 4\nrealloc:\n"
        BY_ADDRESS(libc_realloc_slow)
        "\tcmpq libc_next(%rip), %rsi\n\tjae libc_realloc_slow\n"
        "\tjmp *libc_next+48(%rip)\n.size realloc, .-realloc\n");

__asm__(".text\n.globl malloc_usable_size\n.type malloc_usable_size, @function\n.p2align 4\nmalloc_usable_size:\n"
        BY_ADDRESS(libc_usable_slow)
        "\tjmp *libc_next+96(%rip)\n.size malloc_usable_size, .-malloc_usable_size\n");
/* clang-format on */
