#include <string.h>
#include <sys/mman.h>
#include "shim/arena.h"
#include "shim/buffer.h"
#include "shim/choice.h"
#include "shim/clock.h"
#include "shim/earning.h"
#include "shim/file.h"
#include "shim/lock.h"
#include "shim/log.h"
#include "shim/modules.h"
#include "shim/python.h"
#include "shim/shim.h"
#include "shim/window.h"

#define FILE_MOST     ((size_t)4 << 20)
#define PROFILE_SITES 16384
#define KEY_BYTES     2048

/* site->policy */
struct site_choice {
    const struct profile_entry *entry; /* of earlier runs; NULL: the site is new */
    _Atomic uint32_t marks;
    struct lock lock; /* sparse */
    struct earn_sparse sparse;
};

static struct {
    bool ready;
    struct earn_run *run;
    struct rules rules;
    struct profile profile;
    struct lock lock;            /* making a site's choice */
    _Atomic uint32_t generation; /* of remembered address ranges */
} choices = {.lock = LOCK_INITIALIZER};

static void read_rules(void)
{
    char error[256];
    size_t length = 0;
    const char *rules = shim.options.rules;
    bool named = !strchr(rules, '='); /* there is no rule without one */
    const char *text = named ? file_read(rules, FILE_MOST, &length) : rules;
    if (!*rules) return;
    if (!text)
        log_always("rules %s could not be read; no rule is in force", rules);
    else if (!rules_parse(&choices.rules, text, named ? length : strlen(rules), error, sizeof error))
        log_always("rules %s: %s; no rule is in force", named ? rules : "in ZCSHIM_RULES", error);
}

static void read_profile(void)
{
    char error[256];
    size_t length = 0, bytes = PROFILE_SITES * sizeof(struct profile_entry);
    if (!*shim.options.profile) return;
    void *entries = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (entries == MAP_FAILED) return;
    choices.profile = profile_on(entries, PROFILE_SITES);
    const char *text = file_read(shim.options.profile, FILE_MOST, &length);
    if (text ? strspn(text, " \t\r\n") == length : !file_exists(shim.options.profile)) return; /* a new one */
    if (!text || !profile_is(text)) {
        choices.profile.capacity = 0; /* nothing is kept */
        log_always("%s %s; it is left alone and no profile is kept", shim.options.profile,
                   text ? "is not a profile" : "cannot be read as a profile");
    } else if (!profile_parse(&choices.profile, text, length, error, sizeof error)) {
        log_always("profile %s: %s; it is ignored and will be rewritten", shim.options.profile, error);
    }
}

void choice_start(struct earn_run *run)
{
    choices.run = run;
    read_rules();
    read_profile();
    __atomic_store_n(&choices.ready, true, __ATOMIC_RELEASE);
}

static bool ready(void) { return __atomic_load_n(&choices.ready, __ATOMIC_ACQUIRE); }

/* Module and offset of each frame, and where in a Python program: the same in every run. */
static size_t site_key(const struct site *site, char *key, size_t capacity)
{
    struct profile_frame frames[SITE_DEPTH_MAX + 1];
    char names[SITE_DEPTH_MAX][2 * MODULE_BUILD_ID_MAX + 1];
    size_t count = 0;
    for (uint32_t i = 0; i < site->depth; i++) {
        const struct module *module = module_get(site->modules[i]);
        if (!module) continue;
        for (int b = 0; b < module->build_id_bytes; b++) text_format(names[i] + 2 * b, 3, "%02x", module->build_id[b]);
        frames[count++] = (struct profile_frame){.module = module->build_id_bytes ? names[i] : module->name,
                                                 .offset = site->frames[i] - module->bias};
    }
    if (site->python) frames[count++] = (struct profile_frame){.module = "python", .offset = site->python->hash};
    return profile_key(key, capacity, frames, count);
}

static struct site_choice *choice_of(struct site *site)
{
    struct site_choice *choice = __atomic_load_n((struct site_choice **)&site->policy, __ATOMIC_ACQUIRE);
    if (choice || !ready()) return choice;
    char key[KEY_BYTES];
    lock_acquire(&choices.lock);
    choice = site->policy;
    if (!choice && (choice = arena_calloc(sizeof *choice))) {
        choice->lock = (struct lock)LOCK_INITIALIZER;
        if (choices.profile.count) {
            size_t length = site_key(site, key, sizeof key);
            if (length < sizeof key) choice->entry = profile_find(&choices.profile, key, length);
        }
        if (choice->entry) choice->marks = choice->entry->marks;
        __atomic_store_n((struct site_choice **)&site->policy, choice, __ATOMIC_RELEASE);
    }
    lock_release(&choices.lock);
    return choice;
}

/* What site= is matched against: the modules of its frames and their offsets, then FILE:LINE:FUNCTION of Python's
 * frames, each innermost first. */
static const struct rule *rule_for(const struct site *site, uint64_t bytes)
{
    char text[KEY_BYTES] = "";
    size_t length = 0;
    if (!choices.rules.count) return NULL;
    for (uint32_t i = 0; choices.rules.by_site && site && i < site->depth && length + 64 < sizeof text; i++) {
        const struct module *module = module_get(site->modules[i]);
        if (!module) continue;
        length += text_format(text + length, sizeof text - length, "%s%s+0x%lx", i ? "," : "", module->name,
                              (unsigned long)(site->frames[i] - module->bias));
    }
    const struct python_stack *python = choices.rules.by_site && site ? site->python : NULL;
    for (unsigned i = 0; python && i < python->count && length + 64 < sizeof text; i++)
        length += text_format(text + length, sizeof text - length, ",%s:%u:%s", python->frames[i].file,
                              python->frames[i].line, python->frames[i].function);
    return rules_match(&choices.rules, text, bytes, NULL);
}

enum choice choice_for(struct site *site, uint64_t bytes, struct earn_past *past, bool *known, const char **reason)
{
    *known = false;
    if (!ready()) return CHOICE_OPEN;
    const struct rule *rule = rule_for(site, bytes);
    *reason = "a rule says so";
    if (rule && rule->place != RULE_AUTO) return rule->place == RULE_HOST ? CHOICE_HOST : CHOICE_DRIVER;
    struct site_choice *choice = site ? choice_of(site) : NULL;
    if (!choice) return CHOICE_OPEN;
    *reason = "exported in an earlier run";
    if (choice->marks & PROFILE_IPC) return CHOICE_DRIVER;
    if (choice->entry) {
        *past = choice->entry->past;
        *known = true;
    }
    return CHOICE_OPEN;
}

bool choice_kernel_on_device(const char *name)
{
    if (!ready() || !choices.rules.by_kernel || !name) return false;
    const struct rule *rule = rules_match(&choices.rules, NULL, 0, name);
    return rule && rule->place == RULE_DEVICE;
}

void choice_mark(struct site *site, enum profile_mark mark)
{
    struct site_choice *choice = site ? choice_of(site) : NULL;
    if (choice) atomic_fetch_or(&choice->marks, mark);
}

/* The last buffer of the driver's that this thread copied from or to: most loops stay in one. */
static __thread struct {
    uintptr_t start, end;
    uint32_t generation;
    struct site *site;
} last;

void choice_freed(void) { atomic_fetch_add_explicit(&choices.generation, 1, memory_order_relaxed); }

void choice_native_copy(const struct copy_request *request)
{
    uint32_t generation = atomic_load_explicit(&choices.generation, memory_order_relaxed);
    size_t bytes = request->width * request->height * request->depth;
    if (!ready() || bytes > shim.options.max_size) return;
    if (request->window) { /* lendable: the driver does not know its bounds */
        last.start = request->window->base;
        last.end = last.start + request->window->sole_bytes;
        last.generation = generation;
        last.site = request->window->site;
    } else if (request->device - last.start >= last.end - last.start || last.generation != generation) {
        CUdeviceptr base = 0;
        size_t size = 0;
        struct buffer buffer;
        if (shim.real.cuMemGetAddressRange_v2(&base, &size, request->device) != CUDA_SUCCESS) return;
        last.start = base;
        last.end = base + size;
        last.generation = generation;
        last.site = size > shim.options.max_size && buffer_find(base, &buffer) && buffer.kind == BUFFER_DEVICE
                        ? buffer.site
                        : NULL;
    }
    struct site_choice *choice = last.site ? choice_of(last.site) : NULL;
    if (!choice || !lock_try(&choice->lock)) return;
    struct earn_copy copy = {.now_ns = clock_ns(),
                             .offset = request->device - last.start,
                             .bytes = bytes,
                             .direction = request->direction == COPY_H2D ? COST_H2D : COST_D2H,
                             .waited = copy_waits(request)};
    earn_sparse_copy(&choice->sparse, choices.run->cost, last.end - last.start, shim.options.max_size, &copy);
    lock_release(&choice->lock);
}

bool choice_sparse(struct site *site, struct earn_past *past)
{
    struct site_choice *choice = site ? choice_of(site) : NULL;
    if (!choice || (choice->marks & PROFILE_IPC)) return false;
    if ((choice->marks & PROFILE_SPARSE) && choice->entry) {
        *past = choice->entry->past;
        return true;
    }
    lock_acquire(&choice->lock);
    bool deserves = earn_sparse_deserves(&choice->sparse, choices.run, COST_UNKNOWN, clock_ns());
    if (deserves) *past = earn_sparse_past(&choice->sparse);
    lock_release(&choice->lock);
    if (deserves) atomic_fetch_or(&choice->marks, PROFILE_SPARSE);
    return deserves;
}

static void merge_site(struct site *site)
{
    struct site_choice *choice = site->policy;
    struct earn_past past;
    bool decided;
    const char *reason = site->reason;
    bool placed = earning_past(site, &past, &decided);
    if (!choice || (!placed && !choice->marks)) return;
    if (!placed) past = choice->entry ? choice->entry->past : (struct earn_past){.place = EARN_DEVICE};
    char key[KEY_BYTES];
    size_t length = site_key(site, key, sizeof key);
    char *kept = length < sizeof key ? arena_alloc(length + 1) : NULL;
    if (!kept) return;
    memcpy(kept, key, length + 1);
    struct profile_entry entry = {.key = kept,
                                  .key_length = length,
                                  .past = past,
                                  .runs = 1,
                                  .marks = choice->marks,
                                  .bytes = atomic_load(&site->usage[BUFFER_DEVICE].peak_bytes),
                                  .reason = reason ? reason : "-",
                                  .reason_length = reason ? strlen(reason) : 1};
    profile_merge(&choices.profile, &entry, placed && decided);
}

void choice_at_exit(void)
{
    if (!ready() || !choices.profile.capacity) return;
    profile_grow_old(&choices.profile);
    for (struct site *site = site_first(); site; site = site->next) merge_site(site);
    size_t length = profile_format(NULL, 0, &choices.profile);
    char *text = mmap(NULL, length + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED) return;
    profile_format(text, length + 1, &choices.profile);
    if (!file_replace(shim.options.profile, text, length))
        log_always("profile %s could not be written; the old one, if any, is still there", shim.options.profile);
    munmap(text, length + 1);
}
