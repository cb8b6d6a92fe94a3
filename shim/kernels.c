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
#include "shim/unpack.h"

#define TEXTS_MOST ((size_t)16 << 20) /* kept of all modules */

/* A text of PTX, read as its kernels are asked for. */
struct owner {
    struct owner *next;
    const void *handle, *image; /* image: NULL once looked at */
    CUcontext context;          /* that it ends with; NULL: a library, of all contexts */
    uintptr_t object;           /* whose constant part holds the image; 0: none, the image may change */
    char *text;                 /* of the owner's own; NULL: none that the driver runs */
    size_t text_bytes;
    bool looked_ahead; /* kernels_any_bounded has seen it */
};

#define FUNCTION_BUCKETS 4096

struct function {
    struct function *next;
    const void *handle, *module; /* module: of its owner, known or not */
    CUcontext context;           /* that it ends with; NULL: it does with its owner */
    struct owner *owner;
    char *name;
    bool asked;
    struct ptx_kernel *facts;
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

_Atomic uint32_t kernels_ended[KERNELS_ENDED];

/* The loaded object that holds the image where it is never written, 0: none. */
static uintptr_t object_of(const void *image)
{
    bool constant;
    uintptr_t object = module_object((uintptr_t)image, &constant);
    return constant ? object : 0;
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
    unsigned arch = (unsigned)(10 * major + minor);
    int chosen = module_image_select(&parts, arch, false);
    /* Perhaps the driver was told to compile although there is machine code. */
    if ((getenv("CUDA_FORCE_PTX_JIT") || getenv("CUDA_FORCE_JIT")) && module_image_select(&parts, arch, true) != chosen)
        chosen = -1;
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

static void drop_facts(struct ptx_kernel *facts)
{
    if (!facts) return;
    arena_free((void *)facts->parameters, facts->parameter_count * sizeof *facts->parameters);
    arena_free((void *)facts->pointers, facts->pointer_count * sizeof *facts->pointers);
    arena_free(facts, sizeof *facts);
}

static bool visit(void *context, const struct ptx_kernel *kernel)
{
    struct ptx_kernel **answer = context, *facts = kernel->why ? NULL : keep(kernel, sizeof *kernel);
    if (!facts) return true;
    facts->name = NULL; /* in the text, which may go */
    facts->parameters = keep(kernel->parameters, kernel->parameter_count * sizeof *kernel->parameters);
    facts->pointers = keep(kernel->pointers, kernel->pointer_count * sizeof *kernel->pointers);
    drop_facts(*answer);
    *answer = facts->parameters && facts->pointers ? facts : NULL;
    if (!*answer) drop_facts(facts);
    return true;
}

/* The lock is held. */
static void read_facts(struct function *function)
{
    struct owner *owner = function->owner;
    function->asked = true;
    if (owner && owner->image && object_of(owner->image) == owner->object) take_text(owner);
    if (!owner || !owner->text) return;
    size_t scratch_bytes = ptx_scratch_bytes(owner->text_bytes);
    void *scratch = arena_alloc(scratch_bytes);
    if (!scratch) return;
    struct ptx_kernel *facts = NULL;
    if (ptx_analyse(owner->text, owner->text_bytes, function->name, scratch, scratch_bytes, visit, &facts) ==
        PTX_COMPLETE)
        function->facts = facts;
    else
        drop_facts(facts);
    arena_free(scratch, scratch_bytes);
}

static struct owner *find_owner(const void *handle)
{
    struct owner *owner = kernels.owners;
    while (owner && owner->handle != handle) owner = owner->next;
    return owner;
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

/* What the function was told of before is no more, and its handle may be another's. */
static void function_clear(struct function *function)
{
    atomic_fetch_add_explicit(kernels_ended_of(function->handle), 1, memory_order_relaxed);
    if (function->name) arena_free(function->name, strlen(function->name) + 1);
    drop_facts(function->facts);
    function->name = NULL;
    function->facts = NULL;
    function->owner = NULL;
    function->asked = false;
}

/* What ends: a module or library, or all that a context holds. */
struct end {
    const void *module;
    CUcontext context;
};

static bool ends_owner(const struct end *end, const struct owner *owner)
{
    return end->module ? owner->handle == end->module : owner->context == end->context;
}

static bool ends_function(const struct end *end, const struct function *function)
{
    return end->module ? function->module == end->module : function->context == end->context;
}

/* The lock is held. */
static void end(struct end end)
{
    for (size_t i = 0; i < FUNCTION_BUCKETS; i++)
        for (struct function **at = &kernels.functions[i], *function; (function = *at);) {
            if (!ends_function(&end, function)) {
                at = &function->next;
                continue;
            }
            *at = function->next;
            function_clear(function);
            arena_free(function, sizeof *function);
        }
    for (struct owner **at = &kernels.owners, *owner; (owner = *at);) {
        if (!ends_owner(&end, owner)) {
            at = &owner->next;
            continue;
        }
        *at = owner->next;
        drop_text(owner);
        arena_free(owner, sizeof *owner);
    }
    atomic_fetch_add(&kernels.generation, 1);
}

void kernels_loaded(const void *handle, const void *image, CUcontext context)
{
    struct owner *owner = image ? arena_calloc(sizeof *owner) : NULL;
    if (owner) {
        /* A wrapper has to be relocated and is therefore not constant; what it wraps is. */
        *owner = (struct owner){.handle = handle, .image = module_image_content(image), .context = context};
        owner->object = object_of(owner->image);
        if (!owner->object) unpack_prepare();
    }
    lock_acquire(&kernels.lock);
    if (find_owner(handle)) end((struct end){.module = handle}); /* ended unseen */
    if (owner) {
        /* An image in a constant part of a library or program stays while that is loaded; any other may be gone, or be
         * another, tomorrow. */
        if (!owner->object) take_text(owner);
        owner->next = kernels.owners;
        kernels.owners = owner;
    }
    lock_release(&kernels.lock);
}

void kernels_unloaded(const void *handle)
{
    lock_acquire(&kernels.lock);
    end((struct end){.module = handle});
    lock_release(&kernels.lock);
}

void kernels_context_gone(CUcontext context)
{
    if (!context) return;
    lock_acquire(&kernels.lock);
    end((struct end){.context = context});
    lock_release(&kernels.lock);
}

/* The lock is held. */
static void add_function(struct function is)
{
    struct function *function = find_function(is.handle);
    if (function && function->module == is.module && function->owner == is.owner && function->name &&
        !strcmp(function->name, is.name))
        return;
    is.name = keep(is.name, strlen(is.name) + 1);
    if (!is.name) is.owner = NULL;
    if (function) {
        function_clear(function);
        is.next = function->next;
    } else if ((function = arena_calloc(sizeof *function))) {
        is.next = *bucket_of(is.handle);
        *bucket_of(is.handle) = function;
    } else {
        if (is.name) arena_free(is.name, strlen(is.name) + 1);
        return;
    }
    *function = is;
    atomic_fetch_add(&kernels.generation, 1);
}

void kernels_named(const void *handle, const void *module, const char *name, CUcontext context)
{
    lock_acquire(&kernels.lock);
    add_function((struct function){
        .handle = handle, .module = module, .context = context, .owner = find_owner(module), .name = (char *)name});
    lock_release(&kernels.lock);
}

void kernels_same(const void *handle, const void *kernel, CUcontext context)
{
    lock_acquire(&kernels.lock);
    struct function *known = find_function(kernel);
    if (known && known->name && handle != kernel)
        add_function((struct function){
            .handle = handle, .module = known->module, .context = context, .owner = known->owner, .name = known->name});
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
    if (function && !function->asked) {
        lock_release(&kernels.lock);
        unpack_prepare();
        lock_acquire(&kernels.lock);
        function = find_function(handle);
        generation = atomic_load_explicit(&kernels.generation, memory_order_acquire);
        if (function && !function->asked) read_facts(function);
    }
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
    unpack_prepare();
    lock_acquire(&kernels.lock);
    /* The program's own need not be loaded before the first of them runs. */
    if (!kernels.program_read) kernels.program_bounded = program_images_any(image_has_bounded);
    kernels.program_read = true;
    for (struct owner *owner = kernels.owners; owner && !kernels.program_bounded; owner = owner->next) {
        if (owner->looked_ahead || kernels.read_ahead >= READ_AHEAD) continue;
        const struct module *module = owner->object ? module_get(module_of(owner->object)) : NULL;
        owner->looked_ahead = true;
        if (owner->object && (!module || module->cuda)) continue;
        kernels.read_ahead++;
        if (owner->image && object_of(owner->image) == owner->object) take_text(owner);
        kernels.program_bounded = text_has_bounded(owner);
    }
    bool found = kernels.program_bounded;
    lock_release(&kernels.lock);
    return found;
}
