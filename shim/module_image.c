/* Members of module images, and which of them the driver takes. */
#include "shim/module_image.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/unpack.h"

#define WRAPPER_MAGIC   0x466243b1u
#define CONTAINER_MAGIC 0xba55ed50u
#define FLAG_LZ4        0x2000u
#define FLAG_ZSTD       0x8000u
#define FLAG_VARIANT_A  0x100000u
#define FLAG_VARIANT_F  0x200000u
#define UNPACKED_LIMIT  (1ul << 30)
#define NOTE_CUINFO     1000
#define ABI_WITH_NOTES  8
#define CONTAINER_LIMIT (1ul << 36)

struct wrapper {
    uint32_t magic, version;
    const void *data;
    void *others;
};
struct container {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* after the header */
};
struct member {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t padded_bytes;
    uint32_t compressed_bytes, options_offset;
    uint16_t minor, major;
    uint32_t arch, name_offset, name_bytes;
    uint64_t flags, reserved, unpacked_bytes;
};

static struct module_entry *entry_add(struct module_image *image)
{
    if (image->entry_count == MODULE_IMAGE_ENTRIES) return NULL;
    struct module_entry *entry = &image->entries[image->entry_count++];
    *entry = (struct module_entry){0};
    return entry;
}

/* The virtual architecture that a cubin was compiled from, from its note or, in older ones, its flags. */
static unsigned cubin_virtual_arch(const unsigned char *elf, size_t bytes)
{
    Elf64_Ehdr header;
    if (bytes < sizeof header) return 0;
    memcpy(&header, elf, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64) return 0;
    if (header.e_ident[EI_ABIVERSION] < ABI_WITH_NOTES) return header.e_flags >> 16 & 0xff;
    if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > bytes) return 0;
    unsigned found = 0;
    for (size_t s = 0; s < header.e_shnum; s++) {
        Elf64_Shdr section;
        if ((bytes - header.e_shoff) / sizeof section <= s) return 0;
        memcpy(&section, elf + header.e_shoff + s * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOTE || section.sh_offset > bytes || section.sh_size > bytes - section.sh_offset)
            continue;
        for (size_t at = 0; section.sh_size - at >= sizeof(Elf64_Nhdr);) {
            const unsigned char *note = elf + section.sh_offset + at;
            size_t left = section.sh_size - at - sizeof(Elf64_Nhdr);
            Elf64_Nhdr n;
            memcpy(&n, note, sizeof n);
            size_t name_bytes = ((size_t)n.n_namesz + 3) & ~3ul, value_bytes = ((size_t)n.n_descsz + 3) & ~3ul;
            if (name_bytes > left || value_bytes > left - name_bytes) break;
            uint16_t value[2];
            if (n.n_type == NOTE_CUINFO && n.n_namesz == sizeof "NVIDIA Corp" && n.n_descsz >= sizeof value &&
                !memcmp(note + sizeof n, "NVIDIA Corp", n.n_namesz)) {
                memcpy(value, note + sizeof n + name_bytes, sizeof value);
                if (found && found != value[1]) return 0;
                found = value[1];
            }
            at += sizeof n + name_bytes + value_bytes;
            if (at > section.sh_size) break;
        }
    }
    return found;
}

/* False: a member that is not kept, or kept as one that cannot be unpacked. */
static bool member_add(struct module_image *image, const struct member *m, const unsigned char *payload)
{
    struct module_entry *entry = entry_add(image);
    if (!entry) return false;
    entry->kind = m->kind;
    entry->arch = m->arch;
    entry->variant = m->flags & FLAG_VARIANT_A ? 'a' : m->flags & FLAG_VARIANT_F ? 'f' : 0;
    entry->payload = payload;
    entry->payload_bytes = m->padded_bytes;
    if (!(m->flags & (FLAG_LZ4 | FLAG_ZSTD))) return true;
    bool sane = m->compressed_bytes <= m->padded_bytes && m->unpacked_bytes && m->unpacked_bytes <= UNPACKED_LIMIT;
    entry->is_zstd = m->flags & FLAG_ZSTD;
    entry->payload_bytes = sane ? m->compressed_bytes : 0;
    entry->unpacked_bytes = sane ? m->unpacked_bytes : 1;
    return sane;
}

size_t module_image_container_bytes(const void *data, size_t bytes)
{
    struct container c;
    if (bytes < sizeof c) return 0;
    memcpy(&c, data, sizeof c);
    if (c.magic != CONTAINER_MAGIC || c.header_bytes < sizeof c || c.bytes > CONTAINER_LIMIT) return 0;
    return c.header_bytes + c.bytes <= bytes ? c.header_bytes + c.bytes : 0;
}

static void container_open(struct module_image *image, const unsigned char *data, size_t bytes)
{
    struct container c;
    size_t end = module_image_container_bytes(data, bytes ? bytes : SIZE_MAX);
    bool complete = image->complete;
    image->complete = false;
    if (!end) return;
    memcpy(&c, data, sizeof c);
    size_t at = c.header_bytes;
    while (at < end) {
        struct member m;
        if (end - at < sizeof m) return;
        memcpy(&m, data + at, sizeof m);
        if (m.header_bytes < sizeof m || m.header_bytes > end - at || m.padded_bytes > end - at - m.header_bytes)
            return;
        if (!member_add(image, &m, data + at + m.header_bytes)) complete = false;
        at += m.header_bytes + m.padded_bytes;
    }
    image->complete = complete;
}

const void *module_image_content(const void *image)
{
    struct wrapper w;
    uint32_t magic = 0;
    const unsigned char *start = image;
    for (size_t i = 0; i < sizeof magic && (!i || start[i - 1]); i++) magic |= (uint32_t)start[i] << 8 * i;
    if (magic != WRAPPER_MAGIC) return image;
    memcpy(&w, image, sizeof w);
    return w.version == 1 && w.data ? w.data : image;
}

void module_image_open(struct module_image *image, const void *data, size_t bytes)
{
    *image = (struct module_image){.complete = true};
    const unsigned char *start = data;
    uint32_t magic = 0;
    if (!data) return;
    /* Of an image whose size is not known, a text may be as short as its NUL. */
    for (size_t i = 0; i < sizeof magic && (bytes ? i < bytes : !i || start[i - 1]); i++)
        magic |= (uint32_t)start[i] << 8 * i;
    if (magic == WRAPPER_MAGIC) {
        struct wrapper w;
        if (bytes && bytes < sizeof w) return;
        memcpy(&w, data, sizeof w);
        /* The container is not part of the wrapper: its own header says how far it goes. */
        if (w.data && (w.version == 1 || w.version == 2)) container_open(image, w.data, 0);
        if (w.version != 1) image->complete = false;
    } else if (magic == CONTAINER_MAGIC) {
        container_open(image, data, bytes);
    } else if (memcmp(&magic, ELFMAG, SELFMAG)) {
        struct module_entry *entry = entry_add(image);
        entry->kind = MODULE_ENTRY_PTX;
        entry->payload = data;
        entry->payload_bytes = bytes ? strnlen(data, bytes) : strlen(data);
    }
}

void module_image_close(struct module_image *image)
{
    for (unsigned i = 0; i < image->entry_count; i++)
        if (image->entries[i].unpacked) munmap(image->entries[i].unpacked, image->entries[i].unpacked_bytes);
    image->entry_count = 0;
}

/* The bytes of an entry, unpacked at the first time. */
static const unsigned char *entry_bytes(struct module_entry *e, size_t *bytes)
{
    *bytes = e->unpacked_bytes ? e->unpacked_bytes : e->payload_bytes;
    if (!e->unpacked_bytes) return e->payload;
    if (e->unpacked) return e->unpacked;
    if (!e->payload_bytes) return NULL;
    void *memory = mmap(NULL, e->unpacked_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    bool good = e->is_zstd ? unpack_zstd(memory, e->unpacked_bytes, e->payload, e->payload_bytes)
                           : unpack_lz4(memory, e->unpacked_bytes, e->payload, e->payload_bytes);
    if (!good) {
        munmap(memory, e->unpacked_bytes);
        return NULL;
    }
    return e->unpacked = memory;
}

bool module_image_text(struct module_image *image, unsigned entry, const char **text, size_t *bytes)
{
    if (entry >= image->entry_count || image->entries[entry].kind != MODULE_ENTRY_PTX) return false;
    const unsigned char *start = entry_bytes(&image->entries[entry], bytes);
    if (!start) return false;
    *text = (const char *)start;
    *bytes = strnlen(*text, *bytes);
    return true;
}

/* True if code of this architecture can run on the device: the same major with no larger minor, special variants as
 * they say. */
static bool runs_on(const struct module_entry *e, unsigned arch)
{
    if (e->variant == 'a') return e->arch == arch;
    return e->arch / 10 == arch / 10 && e->arch <= arch;
}

static bool compiles_on(const struct module_entry *e, unsigned arch)
{
    if (e->variant) return e->variant == 'a' ? e->arch == arch : e->arch / 10 == arch / 10 && e->arch <= arch;
    return e->arch <= arch;
}

/* The one entry of the highest architecture among those that fit, and how many are of that architecture. */
static unsigned highest(const struct module_image *image, unsigned kind, unsigned arch, int *found)
{
    unsigned count = 0;
    *found = -1;
    for (unsigned i = 0; i < image->entry_count; i++) {
        const struct module_entry *e = &image->entries[i];
        if (e->kind != kind || !(kind == MODULE_ENTRY_CUBIN ? runs_on(e, arch) : compiles_on(e, arch))) continue;
        if (*found >= 0 && image->entries[*found].arch > e->arch) continue;
        count = *found >= 0 && image->entries[*found].arch == e->arch ? count + 1 : 1;
        *found = i;
    }
    return count;
}

/* The one PTX that a cubin was made from; -1: none or several. */
static int source_of(struct module_image *image, struct module_entry *cubin)
{
    size_t bytes;
    const unsigned char *elf = entry_bytes(cubin, &bytes);
    unsigned virtual_arch = elf ? cubin_virtual_arch(elf, bytes) : 0;
    int found = -1;
    cubin->virtual_arch = virtual_arch;
    if (!virtual_arch) return -1;
    for (unsigned i = 0; i < image->entry_count; i++) {
        const struct module_entry *e = &image->entries[i];
        if (e->kind != MODULE_ENTRY_PTX || e->arch != virtual_arch || e->variant != cubin->variant) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return found;
}

int module_image_select(struct module_image *image, unsigned arch, bool compiles_ptx)
{
    int cubin, ptx;
    if (!image->complete) return -1;
    if (image->entry_count == 1 && image->entries[0].kind == MODULE_ENTRY_PTX && !image->entries[0].arch) return 0;
    unsigned cubins = highest(image, MODULE_ENTRY_CUBIN, arch, &cubin);
    if (cubins && !compiles_ptx) return cubins == 1 ? source_of(image, &image->entries[cubin]) : -1;
    /* Intermediate code of another kind may be preferred to PTX. */
    for (unsigned i = 0; i < image->entry_count; i++)
        if (image->entries[i].kind != MODULE_ENTRY_PTX && image->entries[i].kind != MODULE_ENTRY_CUBIN) return -1;
    return highest(image, MODULE_ENTRY_PTX, arch, &ptx) == 1 ? ptx : -1;
}
