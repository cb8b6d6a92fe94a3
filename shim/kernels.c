#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "policy/ptx.h"
#include "shim/arena.h"
#include "shim/kernels.h"
#include "shim/lock.h"
#include "shim/module_image.h"
#include "shim/shim.h"

/* One kernel of an image, as its PTX describes it. */
struct entry {
    struct entry *next;
    struct kernel_info info;
};

struct owner {
    struct owner *next;
    const void *handle, *image; /* image: NULL once read */
    const void *library;        /* where the image lies; NULL: on the heap */
    struct entry *entries;
};

#define FUNCTION_BUCKETS 4096

struct function {
    struct function *next;
    const void *handle;
    struct owner *owner;
    const char *name;
};

static struct {
    struct lock lock;
    struct owner *owners;
    struct function *functions[FUNCTION_BUCKETS];
} kernels = {.lock = LOCK_INITIALIZER};

static const char *keep_name(const char *name, size_t bytes)
{
    char *kept = arena_alloc(bytes + 1);
    if (!kept) return NULL;
    memcpy(kept, name, bytes);
    kept[bytes] = 0;
    return kept;
}

static uint64_t sum(uint64_t a, uint64_t b) { return a == UINT64_MAX || b == UINT64_MAX ? UINT64_MAX : a + b; }

static bool visit(void *context, const struct ptx_kernel *kernel)
{
    struct owner *owner = context;
    struct entry *entry = arena_calloc(sizeof *entry);
    const char *name = entry ? keep_name(kernel->name, kernel->name_bytes) : NULL;
    if (!name) return false;
    bool unbounded = kernel->why || kernel->loads_elsewhere || kernel->stores_elsewhere || kernel->polls;
    entry->info.name = name;
    entry->info.class = kernel->why ? COST_UNKNOWN : kernel->atomics || kernel->polls ? COST_ATOMICS : COST_PLAIN;
    entry->info.accesses = unbounded ? UINT64_MAX : 0;
    entry->info.atomics = unbounded || kernel->atomics_elsewhere ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < kernel->pointer_count; i++) {
        uint64_t accesses = kernel->pointers[i].accesses_per_thread;
        if (accesses == PTX_UNBOUNDED) accesses = UINT64_MAX;
        entry->info.accesses = sum(entry->info.accesses, accesses);
        if (kernel->pointers[i].atomics) entry->info.atomics = sum(entry->info.atomics, accesses);
    }
    entry->next = owner->entries;
    owner->entries = entry;
    return true;
}

/* The lock is held; no driver call but the question for the device's architecture. */
static void read_image(struct owner *owner)
{
    const void *image = owner->image;
    struct module_image parts;
    CUdevice device;
    int major = 0, minor = 0;
    owner->image = NULL;
    if (!image || shim.real.cuCtxGetDevice(&device) != CUDA_SUCCESS) return;
    shim.real.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    shim.real.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    module_image_open(&parts, image, 0);
    int chosen = module_image_select(&parts, (unsigned)(10 * major + minor), getenv("CUDA_FORCE_PTX_JIT") != NULL);
    const char *text;
    size_t bytes;
    if (chosen >= 0 && parts.entries[chosen].payload_bytes <= KERNELS_TEXT_MOST &&
        parts.entries[chosen].unpacked_bytes <= KERNELS_TEXT_MOST &&
        module_image_text(&parts, (unsigned)chosen, &text, &bytes)) {
        size_t scratch_bytes = ptx_scratch_bytes(bytes);
        void *scratch =
            mmap(NULL, scratch_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (scratch != MAP_FAILED) {
            if (ptx_analyse(text, bytes, NULL, scratch, scratch_bytes, visit, owner) != PTX_COMPLETE)
                owner->entries = NULL;
            munmap(scratch, scratch_bytes);
        }
    }
    module_image_close(&parts);
}

/* The loaded object that holds the address, or NULL. */
static const void *library_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

static struct owner *find_owner(const void *handle)
{
    struct owner *owner = kernels.owners;
    while (owner && owner->handle != handle) owner = owner->next;
    return owner;
}

void kernels_loaded(const void *handle, const void *image)
{
    struct owner *owner = image ? arena_calloc(sizeof *owner) : NULL;
    if (!owner) return;
    owner->handle = handle;
    owner->image = image;
    owner->library = library_of(image);
    lock_acquire(&kernels.lock);
    /* An image in a library or program stays where it is while that is loaded; one on the heap may be gone tomorrow. */
    if (!owner->library) read_image(owner);
    owner->next = kernels.owners;
    kernels.owners = owner;
    lock_release(&kernels.lock);
}

void kernels_unloaded(const void *handle)
{
    lock_acquire(&kernels.lock);
    for (struct owner **at = &kernels.owners; *at; at = &(*at)->next) {
        if ((*at)->handle != handle) continue;
        struct owner *gone = *at;
        *at = gone->next;
        gone->image = NULL;
        gone->entries = NULL; /* functions that still point here know nothing any more */
        break;
    }
    lock_release(&kernels.lock);
}

static struct function **bucket_of(const void *handle)
{
    return &kernels.functions[((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15u >> 52];
}

static struct function *find_function(const void *handle)
{
    struct function *function = *bucket_of(handle);
    while (function && function->handle != handle) function = function->next;
    return function;
}

/* The lock is held. */
static void add_function(const void *handle, struct owner *owner, const char *name)
{
    struct function *function = find_function(handle);
    if (!function) {
        function = arena_calloc(sizeof *function);
        if (!function) return;
        function->handle = handle;
        function->next = *bucket_of(handle);
        *bucket_of(handle) = function;
    }
    function->owner = owner;
    function->name = name;
}

void kernels_named(const void *handle, const void *owner, const char *name)
{
    lock_acquire(&kernels.lock);
    struct function *known = find_function(handle);
    bool same = known && known->name && known->owner == find_owner(owner) && !strcmp(known->name, name);
    const char *kept = same ? known->name : keep_name(name, strlen(name));
    if (kept) add_function(handle, find_owner(owner), kept);
    lock_release(&kernels.lock);
}

void kernels_same(const void *handle, const void *kernel)
{
    lock_acquire(&kernels.lock);
    struct function *known = find_function(kernel);
    if (known && handle != kernel) add_function(handle, known->owner, known->name);
    lock_release(&kernels.lock);
}

bool kernels_find(const void *handle, struct kernel_info *info)
{
    lock_acquire(&kernels.lock);
    struct function *function = find_function(handle);
    if (function) {
        *info = (struct kernel_info){function->name, COST_UNKNOWN, UINT64_MAX, UINT64_MAX};
        if (function->owner && function->owner->image && library_of(function->owner->image) == function->owner->library)
            read_image(function->owner);
        for (struct entry *entry = function->owner ? function->owner->entries : NULL; entry; entry = entry->next)
            if (!strcmp(entry->info.name, function->name)) *info = entry->info;
    }
    lock_release(&kernels.lock);
    return function != NULL;
}
