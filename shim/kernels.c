#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "policy/ptx.h"
#include "shim/arena.h"
#include "shim/kernels.h"
#include "shim/lock.h"
#include "shim/module_image.h"
#include "shim/modules.h"
#include "shim/program_images.h"
#include "shim/shim.h"

#define TEXTS_MOST ((size_t)16 << 20) /* kept of all modules */

/* A text of PTX, read as its kernels are asked for. */
struct owner {
    struct owner *next;
    const void *handle, *image; /* image: NULL once looked at */
    const void *library;        /* where the image lies; NULL: on the heap */
    char *text;                 /* of the owner's own; NULL: none that the driver runs */
    size_t text_bytes;
    bool looked_ahead; /* kernels_any_bounded has seen it */
};

#define FUNCTION_BUCKETS 4096

struct function {
    struct function *next;
    const void *handle;
    struct owner *owner;
    const char *name;
    bool asked;
    const struct ptx_kernel *facts;
};

static struct {
    struct lock lock;
    struct owner *owners;
    struct function *functions[FUNCTION_BUCKETS];
    size_t text_bytes;                  /* kept */
    _Atomic uint32_t generation;        /* of what threads remember */
    unsigned read_ahead;                /* texts that were read before a kernel of theirs was asked for */
    bool program_read, program_bounded; /* the program's own images, see kernels_any_bounded */
} kernels = {.lock = LOCK_INITIALIZER, .generation = 1};

static const char *keep_name(const char *name, size_t bytes)
{
    char *kept = arena_alloc(bytes + 1);
    if (!kept) return NULL;
    memcpy(kept, name, bytes);
    kept[bytes] = 0;
    return kept;
}

/* The loaded object that holds the address, or NULL. */
static const void *library_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* The lock is held; no driver call but the question for the device's architecture. */
static void take_text(struct owner *owner)
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
        parts.entries[chosen].unpacked_bytes <= KERNELS_TEXT_MOST && kernels.text_bytes < TEXTS_MOST &&
        module_image_text(&parts, (unsigned)chosen, &text, &bytes) && (owner->text = arena_alloc(bytes))) {
        memcpy(owner->text, text, bytes);
        owner->text_bytes = bytes;
        kernels.text_bytes += bytes;
    }
    module_image_close(&parts);
}

static void drop_text(struct owner *owner)
{
    if (owner->text) arena_free(owner->text, owner->text_bytes);
    kernels.text_bytes -= owner->text_bytes;
    owner->text = NULL;
    owner->text_bytes = 0;
}

static void *keep(const void *from, size_t bytes)
{
    void *kept = arena_alloc(bytes ? bytes : 1);
    if (kept && bytes) memcpy(kept, from, bytes);
    return kept;
}

static bool visit(void *context, const struct ptx_kernel *kernel)
{
    struct ptx_kernel **answer = context, *facts = kernel->why ? NULL : keep(kernel, sizeof *kernel);
    if (!facts) return true;
    facts->name = NULL; /* in the text, which may go */
    facts->parameters = keep(kernel->parameters, kernel->parameter_count * sizeof *kernel->parameters);
    facts->pointers = keep(kernel->pointers, kernel->pointer_count * sizeof *kernel->pointers);
    if (facts->parameters && facts->pointers) *answer = facts;
    return true;
}

/* The lock is held. */
static void read_facts(struct function *function)
{
    struct owner *owner = function->owner;
    function->asked = true;
    if (owner && owner->image && library_of(owner->image) == owner->library) take_text(owner);
    if (!owner || !owner->text) return;
    size_t scratch_bytes = ptx_scratch_bytes(owner->text_bytes);
    void *scratch = arena_alloc(scratch_bytes);
    if (!scratch) return;
    struct ptx_kernel *facts = NULL;
    if (ptx_analyse(owner->text, owner->text_bytes, function->name, scratch, scratch_bytes, visit, &facts) ==
        PTX_COMPLETE)
        function->facts = facts;
    arena_free(scratch, scratch_bytes);
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
    if (!owner->library) take_text(owner);
    owner->next = kernels.owners;
    kernels.owners = owner;
    lock_release(&kernels.lock);
}

/* The handle is now this kernel's. */
static void forget(struct function *function, struct owner *owner, const char *name)
{
    function->owner = owner;
    function->name = name;
    function->asked = false;
    function->facts = NULL;
    atomic_fetch_add(&kernels.generation, 1);
}

void kernels_unloaded(const void *handle)
{
    lock_acquire(&kernels.lock);
    for (struct owner **at = &kernels.owners; *at; at = &(*at)->next) {
        if ((*at)->handle != handle) continue;
        struct owner *gone = *at;
        *at = gone->next;
        for (size_t i = 0; i < FUNCTION_BUCKETS; i++)
            for (struct function *function = kernels.functions[i]; function; function = function->next)
                if (function->owner == gone) forget(function, NULL, function->name);
        drop_text(gone);
        atomic_fetch_add(&kernels.generation, 1);
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
    if (function->owner != owner || function->name != name) forget(function, owner, name);
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

const char *kernels_name(const void *handle)
{
    lock_acquire(&kernels.lock);
    struct function *function = find_function(handle);
    const char *name = function ? function->name : NULL;
    lock_release(&kernels.lock);
    return name;
}

#define REMEMBERED 16

const struct ptx_kernel *kernels_facts(const void *handle)
{
    static __thread struct remembered {
        const void *handle;
        const struct ptx_kernel *facts;
        uint32_t generation;
    } remembered[REMEMBERED];
    uint32_t generation = atomic_load_explicit(&kernels.generation, memory_order_acquire);
    struct remembered *mine = &remembered[((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15u >> 60];
    if (mine->handle == handle && mine->generation == generation) return mine->facts;
    lock_acquire(&kernels.lock);
    struct function *function = find_function(handle);
    if (function && !function->asked) read_facts(function);
    mine->handle = handle;
    mine->facts = function ? function->facts : NULL;
    mine->generation = generation;
    lock_release(&kernels.lock);
    return mine->facts;
}

#define READ_AHEAD 16

/* Stops at the first that it finds. */
static bool visit_bounded(void *found, const struct ptx_kernel *kernel)
{
    for (uint32_t i = 0; ptx_kernel_confined(kernel) && i < kernel->pointer_count; i++)
        *(bool *)found |=
            kernel->pointers[i].use == PTX_READS && kernel->pointers[i].accesses_per_thread != PTX_UNBOUNDED;
    return !*(bool *)found;
}

static bool text_has_bounded(const struct owner *owner)
{
    size_t scratch_bytes = ptx_scratch_bytes(owner->text_bytes);
    void *scratch = owner->text ? arena_alloc(scratch_bytes) : NULL;
    bool found = false;
    if (!scratch) return false;
    ptx_analyse(owner->text, owner->text_bytes, NULL, scratch, scratch_bytes, visit_bounded, &found);
    arena_free(scratch, scratch_bytes);
    return found;
}

/* The lock is held. */
static bool image_has_bounded(const void *image)
{
    struct owner owner = {.image = image};
    if (kernels.read_ahead++ >= READ_AHEAD) return false;
    take_text(&owner);
    bool found = text_has_bounded(&owner);
    drop_text(&owner);
    return found;
}

bool kernels_any_bounded(void)
{
    lock_acquire(&kernels.lock);
    /* The program's own need not be loaded before the first of them runs. */
    if (!kernels.program_read) kernels.program_bounded = program_images_any(image_has_bounded);
    kernels.program_read = true;
    for (struct owner *owner = kernels.owners; owner && !kernels.program_bounded; owner = owner->next) {
        if (owner->looked_ahead || kernels.read_ahead >= READ_AHEAD) continue;
        const struct module *module = owner->library ? module_get(module_of((uintptr_t)owner->library)) : NULL;
        owner->looked_ahead = true;
        if (owner->library && (!module || module->cuda)) continue;
        kernels.read_ahead++;
        if (owner->image && library_of(owner->image) == owner->library) take_text(owner);
        kernels.program_bounded = text_has_bounded(owner);
    }
    bool found = kernels.program_bounded;
    lock_release(&kernels.lock);
    return found;
}
