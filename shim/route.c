#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include "shim/hostmem.h"
#include "shim/report.h"
#include "shim/entries.h"
#include "shim/route.h"
#include "shim/shim.h"

/* Null until the first look-up of any kind; then the loader's dlsym, to which the assembly below jumps. */
__attribute__((visibility("hidden"))) void *route_dlsym_target;

static struct {
    _Atomic int resolved; /* 0 no, 1 being copied, 2 yes */
    uintptr_t driver_low, driver_high;
} route;

static const struct {
    void *hook;
    size_t slot;
    const char *name;
} route_table[] = {
#define HOOK_ENTRY(name, base, per_thread, parameters, arguments) {(void *)name, offsetof(struct driver, name), #name},
#define SUBMIT_ENTRY(name, parameters, arguments)                 {(void *)name, offsetof(struct driver, name), #name},
#define MEMORY_ENTRY(name, parameters, arguments)                 {(void *)name, offsetof(struct driver, name), #name},
#include "shim/driver.def"
};
#define ROUTE_COUNT (sizeof route_table / sizeof *route_table)

static void *find_dlsym(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    void *target = __atomic_load_n(&route_dlsym_target, __ATOMIC_ACQUIRE);
    for (size_t i = 0; !target && i < sizeof versions / sizeof *versions; i++)
        target = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    __atomic_store_n(&route_dlsym_target, target, __ATOMIC_RELEASE);
    return target;
}

void *route_real_dlsym(void *handle, const char *name)
{
    void *(*real)(void *, const char *) = (void *(*)(void *, const char *))find_dlsym();
    return real ? real(handle, name) : NULL;
}

struct object_search {
    uintptr_t inside, low, high;
};

static int object_visit(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    struct object_search *search = argument;
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD) continue;
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (start < low) low = start;
        if (start + segment->p_memsz > high) high = start + segment->p_memsz;
    }
    if (search->inside < low || search->inside >= high) return 0;
    search->low = low;
    search->high = high;
    return 1;
}

static struct object_search object_of(const void *address)
{
    struct object_search search = {.inside = (uintptr_t)address};
    dl_iterate_phdr(object_visit, &search);
    return search;
}

/* This library's own image, by symbols that the linker sets. */
extern const char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));
static bool in_self(const void *address)
{
    return (const char *)address >= __ehdr_start && (const char *)address < _end;
}

bool route_in_driver(const void *address)
{
    return atomic_load_explicit(&route.resolved, memory_order_acquire) == 2 && (uintptr_t)address >= route.driver_low &&
           (uintptr_t)address < route.driver_high;
}

/* Fills a table of its own and publishes it with one copy: two threads may both do the look-ups (neither may wait for
 * the other, one may hold the loader's lock), the later one only waits out a memcpy. */
static bool resolve_from(void *handle)
{
    struct driver found;
    void *anchor = route_real_dlsym(handle, "cuInit");
    if (!anchor || in_self(anchor)) return false;
    memset(&found, 0, sizeof found);
#define HOOK_ENTRY(name, base, per_thread, parameters, arguments)                                                      \
    found.name = (CUresult(*) parameters)route_real_dlsym(handle, #name);
#define SUBMIT_ENTRY(name, parameters, arguments) found.name = (CUresult(*) parameters)route_real_dlsym(handle, #name);
#define MEMORY_ENTRY(name, parameters, arguments) found.name = (CUresult(*) parameters)route_real_dlsym(handle, #name);
#define USE_ENTRY(name, parameters)               found.name = (CUresult(*) parameters)route_real_dlsym(handle, #name);
#include "shim/driver.def"
    struct object_search driver = object_of(anchor);
    int expected = 0;
    if (atomic_compare_exchange_strong(&route.resolved, &expected, 1)) {
        route.driver_low = driver.low;
        route.driver_high = driver.high;
        memcpy(&shim.real, &found, sizeof found);
        atomic_store_explicit(&route.resolved, 2, memory_order_release);
        hostmem_driver_appeared();
    }
    while (atomic_load_explicit(&route.resolved, memory_order_acquire) != 2) continue;
    return true;
}

bool driver_resolve(void *libcuda)
{
    if (atomic_load_explicit(&route.resolved, memory_order_acquire) == 2) return true;
    if (libcuda) return resolve_from(libcuda);
    /* Called through an exported symbol: the program is linked with libcuda, or its plug-in is. */
    void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) handle = dlopen("libcuda.so.1", RTLD_LAZY);
    if (!handle || !resolve_from(handle)) return false;
    STAT_ADD(routes_symbol, 1);
    return true;
}

void *route_replace(void *function)
{
    for (size_t i = 0; function && i < ROUTE_COUNT; i++)
        if (*(void **)((char *)&shim.real + route_table[i].slot) == function) return route_table[i].hook;
    return function;
}

static bool is_driver_name(const char *name)
{
    return name && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

struct route_answer {
    void *value;
    uintptr_t answered;
};

/* Called by dlsym below. Not answered: jump to the loader's dlsym, which sees the program's own return address. */
__attribute__((visibility("hidden"), used)) struct route_answer route_lookup(void *handle, const char *name,
                                                                             const void *caller)
{
    const struct route_answer forward = {NULL, 0};
    if (!find_dlsym() || !is_driver_name(name)) return forward;
    shim_start();
    if (route_in_driver(caller)) return forward;
    if (handle == RTLD_NEXT) {
        /* From the main program, "next" starts with this library; from any other object it starts behind us. */
        struct object_search caller_object = object_of(caller), main_object = object_of((void *)_r_debug.r_map->l_ld);
        if (caller_object.low != main_object.low) return forward;
    }
    void *found = handle == RTLD_NEXT ? NULL : route_real_dlsym(handle, name);
    bool pseudo = handle == RTLD_NEXT || handle == RTLD_DEFAULT;
    if (handle == RTLD_NEXT || in_self(found)) {
        found = route_real_dlsym(RTLD_NEXT, name);
        pseudo = true;
    }
    if (found && shim_active() && driver_resolve(pseudo ? RTLD_NEXT : handle)) {
        void *hook = route_replace(found);
        if (hook != found) STAT_ADD(routes_dlsym, 1);
        found = hook;
    }
    return (struct route_answer){found, 1};
}

#if defined(__x86_64__)
__asm__(".text\n.globl dlsym\n.type dlsym,@function\ndlsym:\n"
        ".cfi_startproc\n endbr64\n"
        " push %rdi\n.cfi_adjust_cfa_offset 8\n push %rsi\n.cfi_adjust_cfa_offset 8\n"
        " sub $8, %rsp\n.cfi_adjust_cfa_offset 8\n"
        " mov 24(%rsp), %rdx\n call route_lookup\n"
        " add $8, %rsp\n.cfi_adjust_cfa_offset -8\n"
        " pop %rsi\n.cfi_adjust_cfa_offset -8\n pop %rdi\n.cfi_adjust_cfa_offset -8\n"
        " test %rdx, %rdx\n jnz 1f\n jmp *route_dlsym_target(%rip)\n1: ret\n"
        ".cfi_endproc\n.size dlsym,.-dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl dlsym\n.type dlsym,%function\ndlsym:\n"
        ".cfi_startproc\n stp x29, x30, [sp, #-32]!\n.cfi_adjust_cfa_offset 32\n.cfi_rel_offset x29, 0\n"
        ".cfi_rel_offset x30, 8\n stp x0, x1, [sp, #16]\n mov x2, x30\n bl route_lookup\n"
        " mov x16, x0\n mov x17, x1\n ldp x0, x1, [sp, #16]\n ldp x29, x30, [sp], #32\n"
        ".cfi_adjust_cfa_offset -32\n.cfi_restore x29\n.cfi_restore x30\n"
        " cbnz x17, 1f\n adrp x16, route_dlsym_target\n ldr x16, [x16, #:lo12:route_dlsym_target]\n br x16\n"
        "1: mov x0, x16\n ret\n.cfi_endproc\n.size dlsym,.-dlsym\n");
#else
#error "the tail jump of dlsym is written for x86-64 and aarch64"
#endif

/* cuGetProcAddress: the driver chooses by name, version and flags; its choice is then replaced by identity. */
static void replace_result(CUresult result, void **function)
{
    if (result != CUDA_SUCCESS || !function || !*function) return;
    void *hook = route_replace(*function);
    if (hook != *function) STAT_ADD(routes_proc_address, 1);
    *function = hook;
}

#include "shim/hooks/hooks.h"

CUresult hook_cuGetProcAddress(DRIVER(cuGetProcAddress) forward, bool per_thread, const char *symbol, void **pfn,
                               int cudaVersion, cuuint64_t flags)
{
    (void)per_thread;
    CUresult result = forward(symbol, pfn, cudaVersion, flags);
    replace_result(result, pfn);
    return result;
}

CUresult hook_cuGetProcAddress_v2(DRIVER(cuGetProcAddress_v2) forward, bool per_thread, const char *symbol, void **pfn,
                                  int cudaVersion, cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
    (void)per_thread;
    CUresult result = forward(symbol, pfn, cudaVersion, flags, symbolStatus);
    replace_result(result, pfn);
    return result;
}
