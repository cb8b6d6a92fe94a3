#include "shim/program_images.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include "shim/module_image.h"

#define SECTIONS_MOST 512
#define NAMES_MOST    8192

struct section {
    uintptr_t address;
    size_t bytes;
};

static bool read_at(int file, void *to, size_t bytes, off_t offset)
{
    return pread(file, to, bytes, offset) == (ssize_t)bytes;
}

/* Where the section was linked to lie; bytes 0: there is none. */
static struct section section_find(int file, const char *name)
{
    struct section found = {0, 0};
    ElfW(Ehdr) header;
    ElfW(Shdr) section, names;
    char text[NAMES_MOST];
    if (!read_at(file, &header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_shnum > SECTIONS_MOST || header.e_shentsize != sizeof section)
        return found;
    off_t table = (off_t)header.e_shoff;
    if (!read_at(file, &names, sizeof names, table + (off_t)(header.e_shstrndx * sizeof names)) ||
        names.sh_size >= sizeof text || !read_at(file, text, names.sh_size, (off_t)names.sh_offset))
        return found;
    text[names.sh_size] = 0;
    for (unsigned i = 0; i < header.e_shnum && !found.bytes; i++) {
        if (!read_at(file, &section, sizeof section, table + (off_t)(i * sizeof section))) break;
        if (section.sh_name < names.sh_size && strcmp(text + section.sh_name, name) == 0 &&
            section.sh_flags & SHF_ALLOC)
            found = (struct section){section.sh_addr, section.sh_size};
    }
    return found;
}

/* The first object is the program. */
static int take_bias(struct dl_phdr_info *info, size_t bytes, void *bias)
{
    (void)bytes;
    *(uintptr_t *)bias = info->dlpi_addr;
    return 1;
}

bool program_images_any(bool (*visit)(const void *image))
{
    int error = errno, file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct section section = {0, 0};
    uintptr_t bias = 0;
    if (file >= 0) {
        section = section_find(file, ".nv_fatbin");
        close(file);
    }
    dl_iterate_phdr(take_bias, &bias);
    errno = error;
    bool any = false;
    for (size_t at = 0; at < section.bytes && !any;) {
        const char *image = (const char *)bias + section.address + at;
        size_t bytes = module_image_container_bytes(image, section.bytes - at);
        if (bytes) any = visit(image);
        at += bytes ? (bytes + 7) / 8 * 8 : 8; /* they are aligned to 8 */
    }
    return any;
}
