#include "shim/python.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "shim/arena.h"
#include "shim/hash.h"
#include "shim/lock.h"

enum { BUCKETS = 1024, STACKS_MOST = 16384, OWNED_BY_C = 3 };

/* Offsets in CPython's structures, 64 bit. A thread state points to its innermost frame, before 3.13 through a "cframe"
 * on the C stack. `code_identity` is a word that tells apart code objects that lay at one address after each other:
 * from 3.12 on their version number. */
static const struct python_layout layouts[] = {
    {.release = 0x030b,
     .state_frame = 56,
     .cframe_frame = 8,
     .frame_code = 32,
     .frame_previous = 48,
     .frame_instruction = 56,
     .frame_owner = 69,
     .code_identity = 112,
     .code_first_line = 72,
     .code_file = 112,
     .code_function = 128,
     .code_lines = 136,
     .code_instructions = 184,
     .text_bytes = 48},
    {.release = 0x030c,
     .state_frame = 56,
     .cframe_frame = 0,
     .frame_code = 0,
     .frame_previous = 8,
     .frame_instruction = 56,
     .frame_owner = 70,
     .code_identity = 88,
     .code_first_line = 68,
     .code_file = 112,
     .code_function = 128,
     .code_lines = 136,
     .code_instructions = 192,
     .text_bytes = 40},
    {.release = 0x030d,
     .in_state = true,
     .state_frame = 72,
     .frame_code = 0,
     .frame_previous = 8,
     .frame_instruction = 56,
     .frame_owner = 70,
     .code_identity = 88,
     .code_first_line = 68,
     .code_file = 112,
     .code_function = 128,
     .code_lines = 136,
     .code_instructions = 200,
     .text_bytes = 40},
};

static struct {
    struct lock lock;
    const struct python_layout *layout; /* NULL: no interpreter here, or none that is known */
    void *(*this_thread)(void);
    _Atomic int trust; /* 0: the layout was not tried yet; 1: it is right; -1: it is wrong */
    unsigned count;
    struct python_stack *buckets[BUCKETS];
} python = {.lock = LOCK_INITIALIZER};

static bool program_is_python(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return false;
    path[length] = '\0';
    const char *slash = strrchr(path, '/');
    return slash && strncmp(slash + 1, "python", 6) == 0;
}

void python_start(void)
{
    int kept = errno;
    const unsigned long *version;
    if (sizeof(void *) == 8 && program_is_python() && (version = dlsym(RTLD_DEFAULT, "Py_Version"))) {
        python_types.code = (uintptr_t)dlsym(RTLD_DEFAULT, "PyCode_Type");
        python_types.text = (uintptr_t)dlsym(RTLD_DEFAULT, "PyUnicode_Type");
        python_types.bytes = (uintptr_t)dlsym(RTLD_DEFAULT, "PyBytes_Type");
        *(void **)&python.this_thread = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
            if (layouts[i].release == *version >> 16 && python.this_thread) python.layout = &layouts[i];
    }
    errno = kept;
}

/* This thread's state of the interpreter; 0: it has none, or it is not the main thread. */
static uintptr_t this_state(void)
{
    static __thread int main_thread; /* 0: not known yet */
    if (!python.layout || atomic_load_explicit(&python.trust, memory_order_relaxed) < 0) return 0;
    if (!main_thread) main_thread = syscall(SYS_gettid) == getpid() ? 1 : -1;
    return main_thread > 0 ? (uintptr_t)python.this_thread() : 0;
}

/* Of frames that this thread is executing, their code objects and its state. */
__attribute__((no_sanitize("address", "thread"))) static bool get(uintptr_t address, uintptr_t *word)
{
    *word = *(const volatile uintptr_t *)address;
    return true;
}

/* The same while nobody knows whether the layout is right. */
static bool get_carefully(uintptr_t address, uintptr_t *word) { return python_read(address, word, sizeof *word); }

typedef bool getter(uintptr_t address, uintptr_t *word);

/* The innermost frame, 0 where no Python code is running. */
static inline bool top_frame(uintptr_t state, uintptr_t *frame, getter *get_word)
{
    const struct python_layout *layout = python.layout;
    if (!get_word(state + layout->state_frame, frame)) return false;
    return layout->in_state || !*frame || get_word(*frame + layout->cframe_frame, frame);
}

static inline bool slot_read(uintptr_t frame, struct python_slot *slot, getter *get_word)
{
    const struct python_layout *layout = python.layout;
    uintptr_t flags;
    *slot = (struct python_slot){.frame = frame};
    /* The owner's byte is read with the word it lies in. */
    if (!get_word(frame + layout->frame_code, &slot->code) ||
        !get_word(frame + layout->frame_instruction, &slot->instruction) ||
        !get_word(frame + (layout->frame_owner & ~7u), &flags))
        return false;
    bool own = (flags >> (layout->frame_owner & 7u) * 8 & 0xff) == OWNED_BY_C;
    return own || get_word(slot->code + layout->code_identity, &slot->identity);
}

bool python_same(const struct python_moment *moment)
{
    uintptr_t state = this_state(), frame;
    if (state != moment->state) return false;
    if (!state) return true;
    if (atomic_load_explicit(&python.trust, memory_order_acquire) < 1)
        return moment->count == 0; /* none was seen yet */
    top_frame(state, &frame, get);
    for (unsigned i = 0; i < moment->count; i++) {
        struct python_slot slot;
        if (frame != moment->slots[i].frame) return false;
        slot_read(frame, &slot, get);
        if (memcmp(&slot, &moment->slots[i], sizeof slot) != 0) return false;
        get(frame + python.layout->frame_previous, &frame);
    }
    return !moment->whole || frame == 0;
}

/* As many frames as will be named. False: something could not be read. */
static inline bool walk(uintptr_t state, struct python_moment *moment, getter *get_word)
{
    uintptr_t frame;
    unsigned named = 0;
    moment->count = 0;
    if (!top_frame(state, &frame, get_word)) return false;
    while (frame && moment->count < PYTHON_SLOTS_MAX && named < PYTHON_FRAMES_MAX) {
        struct python_slot *slot = &moment->slots[moment->count++];
        if (!slot_read(frame, slot, get_word)) return false;
        if (!get_word(frame + python.layout->frame_previous, &frame)) return false;
        named += slot->identity != 0;
    }
    moment->whole = frame == 0;
    return true;
}

/* Called with the lock held. False: a place has no name, so that the layout is not what it seemed. */
static bool stack_make(struct python_stack *stack, const struct python_moment *moment, uint64_t key)
{
    *stack = (struct python_stack){.key = key, .hash = 1};
    for (unsigned i = 0; i < moment->count; i++) {
        struct python_frame *frame = &stack->frames[stack->count];
        if (!moment->slots[i].identity) continue;
        if (!python_name(python.layout, &moment->slots[i], frame)) return false;
        stack->hash = hash_word(hash_text(hash_text(stack->hash, frame->function), frame->file), frame->line);
        stack->count++;
    }
    return true;
}

/* Called with the lock held; NULL: no memory, or no names. */
static const struct python_stack *stack_intern(const struct python_moment *moment, uint64_t key)
{
    struct python_stack made, **bucket = &python.buckets[key % BUCKETS], *one = *bucket;
    while (one && one->key != key) one = one->next;
    if (one || python.count == STACKS_MOST) return one;
    bool good = stack_make(&made, moment, key);
    atomic_store_explicit(&python.trust, good ? 1 : -1, memory_order_release);
    if (!good || !(one = arena_alloc(sizeof *one))) return NULL;
    *one = made;
    one->next = *bucket;
    *bucket = one;
    python.count++;
    return one;
}

const struct python_stack *python_capture(struct python_moment *moment)
{
    const struct python_stack *stack = NULL;
    uintptr_t state = this_state();
    uint64_t key = 1;
    bool named = false, trusted = atomic_load_explicit(&python.trust, memory_order_acquire) > 0;
    *moment = (struct python_moment){.state = state, .whole = true};
    if (!state) return NULL;
    if (!(trusted ? walk(state, moment, get) : walk(state, moment, get_carefully))) {
        atomic_store_explicit(&python.trust, -1, memory_order_release);
        return NULL;
    }
    for (unsigned i = 0; i < moment->count; i++) {
        const struct python_slot *slot = &moment->slots[i];
        if (!slot->identity) continue;
        key = hash_word(hash_word(hash_word(key, slot->code), slot->identity), slot->instruction);
        named = true;
    }
    if (!named) return NULL;
    lock_acquire(&python.lock);
    stack = stack_intern(moment, key);
    lock_release(&python.lock);
    return stack;
}

void python_after_fork(void) { python.lock = (struct lock)LOCK_INITIALIZER; }
