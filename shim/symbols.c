#include "shim/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shim/arena.h"
#include "shim/log.h"
#include "shim/modules.h"
#include "shim/sort.h"

/* A file of the system's, mapped; nothing in it is believed without a look at `bytes`. */
struct image {
    int fd;
    const char *data;
    size_t bytes;
};

static bool image_open(struct image *image, const char *path)
{
    struct stat status;
    image->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (image->fd < 0) return false;
    if (fstat(image->fd, &status) == 0 && S_ISREG(status.st_mode) && (size_t)status.st_size > sizeof(ElfW(Ehdr))) {
        void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, image->fd, 0);
        image->data = data;
        image->bytes = (size_t)status.st_size;
        if (data != MAP_FAILED && memcmp(data, ELFMAG, SELFMAG) == 0 && image->data[EI_CLASS] == ELFCLASS64)
            return true;
        if (data != MAP_FAILED) munmap(data, image->bytes);
    }
    close(image->fd);
    return false;
}

static void image_close(struct image *image)
{
    munmap((void *)image->data, image->bytes);
    close(image->fd);
}

static const void *image_at(const struct image *image, uint64_t offset, uint64_t bytes)
{
    return offset <= image->bytes && bytes <= image->bytes - offset ? image->data + offset : NULL;
}

/* The section of a type, from number `from` on; NULL if there is none. */
static const ElfW(Shdr) * image_section(const struct image *image, unsigned from, uint32_t type)
{
    const ElfW(Ehdr) *header = (const void *)image->data;
    const ElfW(Shdr) *sections = image_at(image, header->e_shoff, (uint64_t)header->e_shnum * sizeof *sections);
    if (!sections || header->e_shentsize != sizeof *sections) return NULL;
    for (unsigned i = from; i < header->e_shnum; i++)
        if (sections[i].sh_type == type) return &sections[i];
    return NULL;
}

static bool image_has_build_id(const struct image *image, const struct module *module)
{
    const ElfW(Ehdr) *header = (const void *)image->data;
    const ElfW(Phdr) *segment = image_at(image, header->e_phoff, (uint64_t)header->e_phnum * sizeof *segment);
    if (!module->build_id_bytes) return true;
    for (unsigned i = 0; segment && i < header->e_phnum; i++) {
        if (segment[i].p_type != PT_NOTE) continue;
        const char *notes = image_at(image, segment[i].p_offset, segment[i].p_filesz);
        if (notes && memmem(notes, segment[i].p_filesz, module->build_id, module->build_id_bytes)) return true;
    }
    return false;
}

/* The symbols that lie in [first, first + count), which is sorted by address, get their names. */
static void image_name(const struct image *image, const struct module *module, struct symbol *symbols, size_t count)
{
    const ElfW(Shdr) *table = image_section(image, 0, SHT_SYMTAB);
    if (!table) table = image_section(image, 0, SHT_DYNSYM);
    if (!table) return;
    const ElfW(Ehdr) *header = (const void *)image->data;
    const ElfW(Shdr) *strings =
        image_at(image, header->e_shoff + (uint64_t)table->sh_link * sizeof *strings, sizeof *strings);
    const ElfW(Sym) *symbol = image_at(image, table->sh_offset, table->sh_size);
    const char *names = strings ? image_at(image, strings->sh_offset, strings->sh_size) : NULL;
    if (!symbol || !names || !strings->sh_size || names[strings->sh_size - 1]) return;
    for (uint64_t i = 0; i < table->sh_size / sizeof *symbol; i++, symbol++) {
        unsigned type = symbol->st_info & 0xf;
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || !symbol->st_shndx || symbol->st_name >= strings->sh_size)
            continue;
        uint64_t size = symbol->st_size ? symbol->st_size : 1;
        size_t low = 0, high = count; /* the first pc behind the start of this function */
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (symbols[middle].pc - module->bias - 1 < symbol->st_value)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low < count && symbols[low].pc - module->bias - 1 - symbol->st_value < size; low++) {
            if (symbols[low].frames[0].function) continue; /* an alias */
            symbols[low].frames[0].function = names + symbol->st_name;
            symbols[low].in_function = symbols[low].pc - module->bias - symbol->st_value;
            symbols[low].count = 1;
        }
    }
}

/* The file that a distribution keeps debug information in. */
static bool image_open_debug(struct image *image, const struct module *module)
{
    char path[128];
    size_t length = text_format(path, sizeof path, "/usr/lib/debug/.build-id/%02x/", module->build_id[0]);
    if (module->build_id_bytes < 2) return false;
    for (unsigned i = 1; i < module->build_id_bytes; i++)
        length += text_format(path + length, sizeof path - length, "%02x", module->build_id[i]);
    text_format(path + length, sizeof path - length, ".debug");
    return image_open(image, path);
}

static void resolve_lines(struct image *image, const struct module *module, struct symbol *symbols, size_t count)
{
    struct dwarf_file *dwarf = dwarf_file_open(image->fd);
    if (!dwarf) return;
    for (size_t i = 0; i < count; i++) dwarf_file_resolve(dwarf, symbols[i].pc - module->bias - 1, &symbols[i]);
    dwarf_file_close(dwarf);
}

static void resolve_module(const struct module *module, struct symbol *symbols, size_t count)
{
    struct image image, debug;
    if (!image_open(&image, module->main ? "/proc/self/exe" : module->path)) return;
    if (image_has_build_id(&image, module)) {
        bool folded = module->system || module->cuda; /* nobody asks for their lines */
        bool apart = !folded && image_open_debug(&debug, module);
        if (apart) image_name(&debug, module, symbols, count);
        image_name(&image, module, symbols, count);
        for (size_t i = 0; i < count; i++) /* the names lie in the mapped file so far */
            if (symbols[i].frames[0].function)
                symbols[i].frames[0].function = symbol_readable(symbols[i].frames[0].function);
        if (!folded) resolve_lines(apart ? &debug : &image, module, symbols, count);
        if (apart) image_close(&debug);
    }
    image_close(&image);
}

static int symbol_order(const void *a, const void *b)
{
    const struct symbol *one = a, *other = b;
    if (one->module != other->module) return one->module < other->module ? -1 : 1;
    return one->pc < other->pc ? -1 : one->pc > other->pc;
}

_Static_assert(sizeof(struct symbol) <= SORT_ITEM_MAX, "sort_items holds one");

size_t symbols_resolve(struct symbol *symbols, size_t count)
{
    size_t kept = 0;
    sort_items(symbols, count, sizeof *symbols, symbol_order);
    for (size_t i = 0; i < count; i++) {
        if (kept && symbol_order(&symbols[kept - 1], &symbols[i]) == 0) continue;
        symbols[kept++] = (struct symbol){.pc = symbols[i].pc, .module = symbols[i].module};
    }
    for (size_t first = 0, end; first < kept; first = end) {
        const struct module *module = module_get(symbols[first].module);
        for (end = first; end < kept && symbols[end].module == symbols[first].module;) end++;
        if (module) resolve_module(module, symbols + first, end - first);
    }
    return kept;
}

const struct symbol *symbols_find(const struct symbol *symbols, size_t count, unsigned module, uintptr_t pc)
{
    struct symbol wanted = {.module = module, .pc = pc};
    for (size_t low = 0, high = count; low < high;) {
        size_t middle = (low + high) / 2;
        int order = symbol_order(&wanted, &symbols[middle]);
        if (order == 0) return &symbols[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
