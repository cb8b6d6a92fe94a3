#include "shim/modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include "shim/arena.h"
#include "shim/hash.h"
#include "shim/lock.h"

enum { BUCKETS = 512, HEADER_BYTES = 4096 };

struct entry {
    struct module module;
    const struct link_map *map;
    const uint8_t *id_in_memory; /* for a second look; NULL when it is not in the first page */
    uint32_t number;
    struct entry *_Atomic next;
};

static struct {
    struct lock lock; /* for adding */
    struct entry *_Atomic buckets[BUCKETS];
    struct entry *_Atomic numbered[MODULES_MOST];
    _Atomic unsigned count;
} modules = {.lock = LOCK_INITIALIZER};

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

bool module_is_own(uintptr_t pc) { return pc - (uintptr_t)__ehdr_start < (uintptr_t)etext - (uintptr_t)__ehdr_start; }

struct object {
    uintptr_t start, end;
    const struct link_map *map;
};

/* What the loader knows of `pc`, without its lock. */
static bool object_of(uintptr_t pc, struct object *object)
{
#if __GLIBC_PREREQ(2, 35)
    struct dl_find_object found;
    if (_dl_find_object((void *)pc, &found) != 0) return false;
    *object = (struct object){(uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end, found.dlfo_link_map};
#else
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1((void *)pc, &info, (void **)&map, RTLD_DL_LINKMAP)) return false;
    *object = (struct object){(uintptr_t)info.dli_fbase, (uintptr_t)info.dli_fbase + 1, map};
#endif
    return true;
}

/* The segments of a loaded object, as its first page names them; 0: it does not. */
static unsigned segments_of(const struct object *object, const ElfW(Phdr) * *segments)
{
    const ElfW(Ehdr) *header = (const void *)object->start;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return 0;
    if (header->e_phoff + (size_t)header->e_phnum * sizeof(ElfW(Phdr)) > HEADER_BYTES) return 0;
    *segments = (const void *)(object->start + header->e_phoff);
    return header->e_phnum;
}

uintptr_t module_object(uintptr_t address, bool *constant)
{
    struct object object;
    const ElfW(Phdr) * segment;
    *constant = false;
    if (!object_of(address, &object) || !object.map) return 0;
    for (unsigned count = segments_of(&object, &segment); count; count--, segment++)
        if (segment->p_type == PT_LOAD && address - object.map->l_addr - segment->p_vaddr < segment->p_memsz)
            *constant = !(segment->p_flags & PF_W);
    return object.start;
}

/* The GNU build-id among the notes of a loaded object; its length, 0 if there is none. */
static unsigned build_id_find(const struct object *object, const uint8_t **id)
{
    const ElfW(Phdr) * segment;
    for (unsigned count = segments_of(object, &segment); count; count--, segment++) {
        if (segment->p_type != PT_NOTE) continue;
        const char *at = (const char *)object->map->l_addr + segment->p_vaddr, *end = at + segment->p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const void *)at;
            const char *name = at + sizeof *note, *value = name + ((note->n_namesz + 3) & ~3u);
            if (value + note->n_descsz > end || value < at) break;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
                *id = (const uint8_t *)value;
                return note->n_descsz < MODULE_BUILD_ID_MAX ? note->n_descsz : MODULE_BUILD_ID_MAX;
            }
            at = value + ((note->n_descsz + 3) & ~3u);
        }
    }
    return 0;
}

static bool starts_with(const char *string, const char *start) { return strncmp(string, start, strlen(start)) == 0; }

static void module_classify(struct module *module)
{
    static const char *const cuda[] = {"libcuda.so",  "libcudart",    "libcublas",        "libcudnn",      "libcufft",
                                       "libcurand",   "libcusolver",  "libcusparse",      "libnccl",       "libnvrtc",
                                       "libnpp",      "libnvJitLink", "libnvjitlink",     "libcutensor",   "libnvjpeg",
                                       "libcufile",   "libcupti",     "libnvptxcompiler", "libnvToolsExt", "libnvidia-",
                                       "libcuTENSOR", "libcudss",     "libnvshmem",       "libcuda_"};
    static const char *const system[] = {"libc.so", "libc-", "ld-linux", "ld-2", "libpthread", "libdl.so"};
    for (size_t i = 0; i < sizeof cuda / sizeof *cuda; i++) module->cuda |= starts_with(module->name, cuda[i]);
    for (size_t i = 0; i < sizeof system / sizeof *system; i++) module->system |= starts_with(module->name, system[i]);
    module->interpreter =
        starts_with(module->name, "libpython") || (module->main && starts_with(module->name, "python"));
    module->runtime = starts_with(module->name, "libcuda.so") || starts_with(module->name, "libcudart");
}

/* The path of a loaded object as a copy of its own; relative names are completed now, since the program may change its
 * folder. */
static const char *module_path(const struct link_map *map, bool main)
{
    char path[PATH_MAX];
    size_t length = 0;
    if (main) {
        ssize_t got = readlink("/proc/self/exe", path, sizeof path - 1);
        length = got > 0 ? (size_t)got : 0;
    } else {
        if (map->l_name[0] != '/' && strchr(map->l_name, '/') && getcwd(path, sizeof path / 2)) {
            length = strlen(path);
            path[length++] = '/';
        }
        size_t name = strlen(map->l_name);
        if (name > sizeof path - length - 1) name = sizeof path - length - 1;
        memcpy(path + length, map->l_name, name);
        length += name;
    }
    char *copy = arena_alloc(length + 1);
    if (!copy) return "";
    memcpy(copy, path, length);
    copy[length] = '\0';
    return copy;
}

static bool entry_is(const struct entry *entry, const struct object *object)
{
    return entry->module.start == object->start && entry->module.end == object->end && entry->map == object->map &&
           entry->module.bias == object->map->l_addr &&
           (!entry->id_in_memory ||
            memcmp(entry->id_in_memory, entry->module.build_id, entry->module.build_id_bytes) == 0);
}

/* The first page of an object stays readable while it is loaded, so the second look may read there and nowhere else. */
static struct entry *entry_make(const struct object *object)
{
    struct entry *entry = arena_calloc(sizeof *entry);
    if (!entry) return NULL;
    struct module *module = &entry->module;
    const uint8_t *id = NULL;
    module->start = object->start;
    module->end = object->end;
    module->bias = object->map->l_addr;
    module->build_id_bytes = (uint8_t)build_id_find(object, &id);
    if (module->build_id_bytes) memcpy(module->build_id, id, module->build_id_bytes);
    if (module->build_id_bytes && (uintptr_t)id - object->start + module->build_id_bytes < HEADER_BYTES)
        entry->id_in_memory = id;
    module->main = object->map->l_name[0] == '\0';
    module->path = module_path(object->map, module->main);
    const char *slash = strrchr(module->path, '/');
    module->name = slash ? slash + 1 : module->path;
    module->identity = module->build_id_bytes ? hash_bytes(HASH_START, module->build_id, module->build_id_bytes)
                                              : hash_bytes(HASH_START, module->name, strlen(module->name));
    entry->map = object->map;
    module_classify(module);
    return entry;
}

static struct entry *entry_find(struct entry *_Atomic *bucket, const struct object *object)
{
    struct entry *entry = atomic_load_explicit(bucket, memory_order_acquire);
    while (entry && !entry_is(entry, object)) entry = atomic_load_explicit(&entry->next, memory_order_acquire);
    return entry;
}

unsigned module_of(uintptr_t pc)
{
    struct object object;
    if (!object_of(pc, &object) || !object.map) return 0;
    struct entry *_Atomic *bucket = &modules.buckets[(object.start >> 12) * 0x9e3779b97f4a7c15u >> 55];
    struct entry *entry = entry_find(bucket, &object);
    if (entry) return entry->number;

    int kept = errno;
    lock_acquire(&modules.lock);
    entry = entry_find(bucket, &object);
    unsigned count = atomic_load_explicit(&modules.count, memory_order_relaxed);
    if (!entry && count + 1 < MODULES_MOST && (entry = entry_make(&object))) {
        entry->number = count + 1;
        entry->next = atomic_load_explicit(bucket, memory_order_relaxed);
        atomic_store_explicit(&modules.numbered[count + 1], entry, memory_order_release);
        atomic_store_explicit(&modules.count, count + 1, memory_order_release);
        atomic_store_explicit(bucket, entry, memory_order_release);
    }
    lock_release(&modules.lock);
    errno = kept;
    return entry ? entry->number : 0;
}

const struct module *module_get(unsigned number)
{
    if (number == 0 || number >= MODULES_MOST) return NULL;
    struct entry *entry = atomic_load_explicit(&modules.numbered[number], memory_order_acquire);
    return entry ? &entry->module : NULL;
}

void module_after_fork(void) { modules.lock = (struct lock)LOCK_INITIALIZER; }
