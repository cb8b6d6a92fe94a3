/* What the machine and its cgroup allow: memory and CPUs. Files are read with open and read into a buffer on the stack.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "shim/clock.h"
#include "shim/hostmem_internal.h"
#include "shim/shim.h"
#include "shim/log.h"

#define REFRESH_NS ((uint64_t)100000000)

static struct {
    _Atomic uint64_t read_at_ns;
    _Atomic size_t bytes; /* of the budget */
    _Atomic size_t available;
} budget;

/* System calls themselves: malloc and free are no cancellation points. */
static size_t read_file(const char *path, char *text, size_t capacity)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    size_t length = 0;
    for (long got; length + 1 < capacity && (got = syscall(SYS_read, fd, text + length, capacity - 1 - length)) > 0;)
        length += (size_t)got;
    syscall(SYS_close, fd);
    text[length] = 0;
    return length;
}

/* The number behind `key`; SIZE_MAX if it is not there or is the word max. */
static size_t number_after(const char *text, const char *key)
{
    const char *at = *key ? strstr(text, key) : text;
    if (!at) return SIZE_MAX;
    at += strlen(key);
    while (*at == ' ' || *at == '\t') at++;
    if (*at < '0' || *at > '9') return SIZE_MAX;
    return strtoull(at, NULL, 10);
}

static size_t machine_available(void)
{
    char text[4096];
    size_t kib = read_file("/proc/meminfo", text, sizeof text) ? number_after(text, "MemAvailable:") : SIZE_MAX;
    return kib == SIZE_MAX ? SIZE_MAX : kib << 10;
}

/* The path that /proc/self/cgroup gives for a controller (v1), or for the unified hierarchy when `controller` is empty.
 */
static bool cgroup_path(const char *groups, const char *controller, char *path, size_t capacity)
{
    for (const char *line = groups; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *names = strchr(line, ':');
        const char *place = names ? strchr(names + 1, ':') : NULL;
        if (!place) return false;
        size_t names_length = (size_t)(place - names - 1), wanted = strlen(controller);
        bool match = wanted == 0 && names_length == 0;
        for (const char *at = names + 1; wanted && at < place && !match; at++)
            match = (at == names + 1 || at[-1] == ',') && strncmp(at, controller, wanted) == 0 &&
                    (at[wanted] == ',' || at[wanted] == ':');
        if (!match) continue;
        size_t length = strcspn(place + 1, "\n");
        if (length >= capacity) return false;
        memcpy(path, place + 1, length);
        path[length] = 0;
        return true;
    }
    return false;
}

/* Calls `ask` for the group and each of its parents: a limit anywhere above counts. */
static void walk_up(const char *root, char *path, void (*ask)(const char *folder, void *argument), void *argument)
{
    for (;;) {
        char folder[512];
        text_format(folder, sizeof folder, "%s%s", root, strcmp(path, "/") ? path : "");
        ask(folder, argument);
        char *slash = strrchr(path, '/');
        if (!slash || !path[0] || !path[1]) return;
        slash[slash == path ? 1 : 0] = 0;
    }
}

struct memory_question {
    const char *limit, *used, *inactive;
    size_t left;
};

static void ask_memory(const char *folder, void *argument)
{
    struct memory_question *question = argument;
    char path[600], text[8192];
    text_format(path, sizeof path, "%s/%s", folder, question->limit);
    size_t limit = read_file(path, text, sizeof text) ? number_after(text, "") : SIZE_MAX;
    if (limit >= (size_t)1 << 62) return;
    text_format(path, sizeof path, "%s/%s", folder, question->used);
    size_t used = read_file(path, text, sizeof text) ? number_after(text, "") : 0;
    text_format(path, sizeof path, "%s/memory.stat", folder);
    size_t inactive = read_file(path, text, sizeof text) ? number_after(text, question->inactive) : SIZE_MAX;
    if (inactive != SIZE_MAX) used -= inactive < used ? inactive : used; /* page cache that goes when it must */
    size_t left = limit > used ? limit - used : 0;
    if (left < question->left) question->left = left;
}

static size_t cgroup_left(void)
{
    char groups[4096], path[400];
    struct memory_question question = {"memory.max", "memory.current", "\ninactive_file ", SIZE_MAX};
    if (!read_file("/proc/self/cgroup", groups, sizeof groups)) return SIZE_MAX;
    if (cgroup_path(groups, "", path, sizeof path)) walk_up("/sys/fs/cgroup", path, ask_memory, &question);
    struct memory_question old = {"memory.limit_in_bytes", "memory.usage_in_bytes", "\ntotal_inactive_file ", SIZE_MAX};
    if (cgroup_path(groups, "memory", path, sizeof path)) walk_up("/sys/fs/cgroup/memory", path, ask_memory, &old);
    return old.left < question.left ? old.left : question.left;
}

static void reread(uint64_t now)
{
    int kept = errno;
    size_t machine = machine_available(), group = cgroup_left(), available = group < machine ? group : machine;
    atomic_store_explicit(&budget.available, available, memory_order_relaxed);
    size_t limit = shim.options.pin_limit;
    if (!limit) {
        hostmem_lock();
        size_t ours = hostmem.registered > hostmem.kept ? hostmem.registered : hostmem.kept;
        hostmem_unlock();
        /* What is ours already is not available any more, but was. */
        limit = available == SIZE_MAX ? (size_t)1 << 30 : (available + ours) / 4;
    }
    atomic_store_explicit(&budget.bytes, limit, memory_order_relaxed);
    atomic_store_explicit(&budget.read_at_ns, now, memory_order_release);
    errno = kept;
}

void budget_refresh(void)
{
    uint64_t now = clock_ns(), at = atomic_load_explicit(&budget.read_at_ns, memory_order_acquire);
    if (at && now - at < REFRESH_NS) return;
    reread(now);
}

size_t budget_bytes(void) { return atomic_load_explicit(&budget.bytes, memory_order_relaxed); }
size_t budget_available(void)
{
    budget_refresh();
    return atomic_load_explicit(&budget.available, memory_order_relaxed);
}

struct cpu_question {
    size_t hundredths; /* of a CPU */
};

static void ask_quota_v2(const char *folder, void *argument)
{
    struct cpu_question *question = argument;
    char path[600], text[128];
    text_format(path, sizeof path, "%s/cpu.max", folder);
    size_t quota = read_file(path, text, sizeof text) ? number_after(text, "") : SIZE_MAX;
    size_t period = quota == SIZE_MAX ? SIZE_MAX : number_after(text, " ");
    if (period == SIZE_MAX || !period) return;
    if (quota * 100 / period < question->hundredths) question->hundredths = quota * 100 / period;
}

static void ask_quota_v1(const char *folder, void *argument)
{
    struct cpu_question *question = argument;
    char path[600], text[128];
    text_format(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    size_t quota = read_file(path, text, sizeof text) ? number_after(text, "") : SIZE_MAX;
    text_format(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    size_t period = read_file(path, text, sizeof text) ? number_after(text, "") : SIZE_MAX;
    if (quota == SIZE_MAX || period == SIZE_MAX || !period) return;
    if (quota * 100 / period < question->hundredths) question->hundredths = quota * 100 / period;
}

unsigned budget_cpus(void)
{
    int kept = errno;
    unsigned long mask[128] = {0}; /* 8192 CPUs */
    unsigned cpus = 0;
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)(void *)mask) == 0)
        for (size_t i = 0; i < sizeof mask / sizeof *mask; i++) cpus += (unsigned)__builtin_popcountl(mask[i]);
    if (!cpus) cpus = 1;
    struct cpu_question question = {SIZE_MAX};
    char groups[4096], path[400];
    if (read_file("/proc/self/cgroup", groups, sizeof groups)) {
        if (cgroup_path(groups, "", path, sizeof path)) walk_up("/sys/fs/cgroup", path, ask_quota_v2, &question);
        if (cgroup_path(groups, "cpu", path, sizeof path)) walk_up("/sys/fs/cgroup/cpu", path, ask_quota_v1, &question);
    }
    unsigned quota = question.hundredths == SIZE_MAX ? cpus : (unsigned)(question.hundredths / 100);
    errno = kept;
    return quota < cpus ? (quota ? quota : 1) : cpus;
}

enum thp_mode budget_thp(void)
{
    static _Atomic int known; /* enum thp_mode + 1 */
    int mode = atomic_load_explicit(&known, memory_order_relaxed);
    if (mode) return (enum thp_mode)(mode - 1);
    int kept = errno;
    char text[128];
    enum thp_mode found = THP_NEVER;
    if (read_file("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text)) {
        if (strstr(text, "[always]")) found = THP_ALWAYS;
        if (strstr(text, "[madvise]")) found = THP_MADVISE;
    }
    atomic_store_explicit(&known, (int)found + 1, memory_order_relaxed);
    errno = kept;
    return found;
}
