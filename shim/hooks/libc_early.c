#include "shim/hooks/libc_early.h"
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define EARLY_BYTES ((size_t)64 << 20) /* of addresses */
#define EARLY_PAGE  ((size_t)4096)

static uintptr_t early_base, early_used; /* plain words with atomic access */

/* The loader turns the link-time address into the real one. */
static void *volatile early_self = (void *)&early_self;

bool early_relocated(void)
{
    void *here;
#if defined __x86_64__
    __asm__("leaq early_self(%%rip), %0" : "=r"(here));
#elif defined __aarch64__
    __asm__("adrp %0, early_self\n\tadd %0, %0, :lo12:early_self" : "=r"(here));
#else
#error "early_relocated: which address is this?"
#endif
    return early_self == here;
}

static long raw_mmap(size_t bytes)
{
#if defined __x86_64__
    long result;
    register long flags __asm__("r10") = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    register long fd __asm__("r8") = -1;
    register long offset __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_mmap), "D"(0L), "S"(bytes), "d"((long)(PROT_READ | PROT_WRITE)), "r"(flags), "r"(fd),
                       "r"(offset)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x0 __asm__("x0") = 0;
    register long x1 __asm__("x1") = (long)bytes;
    register long x2 __asm__("x2") = PROT_READ | PROT_WRITE;
    register long x3 __asm__("x3") = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    register long x4 __asm__("x4") = -1;
    register long x5 __asm__("x5") = 0;
    register long x8 __asm__("x8") = SYS_mmap;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), "r"(x8) : "memory");
    return x0;
#endif
}

static uintptr_t early_start(void)
{
    uintptr_t base = __atomic_load_n(&early_base, __ATOMIC_ACQUIRE);
    if (base) return base;
    long fresh = raw_mmap(EARLY_BYTES);
    if (fresh < 0 && fresh > -4096) return 0;
    /* A second thread's mapping is left unused: no pages of it exist. */
    uintptr_t none = 0;
    if (__atomic_compare_exchange_n(&early_base, &none, (uintptr_t)fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return (uintptr_t)fresh;
    return none;
}

/* Each block has a page in front of it whose last word is its size. */
void *early_take_aligned(size_t bytes, size_t alignment)
{
    uintptr_t base = early_start();
    if (!base || bytes > EARLY_BYTES || alignment > EARLY_BYTES) return NULL;
    if (alignment < EARLY_PAGE) alignment = EARLY_PAGE;
    size_t length = ((bytes + EARLY_PAGE - 1) & ~(EARLY_PAGE - 1)) + (bytes ? 0 : EARLY_PAGE);
    size_t span = length + alignment;
    uintptr_t offset = __atomic_fetch_add(&early_used, span, __ATOMIC_RELAXED);
    if (offset + span > EARLY_BYTES) return NULL;
    uintptr_t block = (base + offset + EARLY_PAGE + alignment - 1) & ~(uintptr_t)(alignment - 1);
    ((size_t *)block)[-1] = length;
    return (void *)block;
}

void *early_take(size_t bytes) { return early_take_aligned(bytes, EARLY_PAGE); }

bool early_owns(const void *address)
{
    uintptr_t base = __atomic_load_n(&early_base, __ATOMIC_ACQUIRE);
    return base && (uintptr_t)address - base < EARLY_BYTES;
}

size_t early_usable(const void *address) { return ((const size_t *)address)[-1]; }
