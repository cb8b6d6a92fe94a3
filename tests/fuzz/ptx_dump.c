/* ptx-dump FILE...: what the kernels of PTX texts, fat binaries and programs (.nv_fatbin) do to the memory of their
 * parameters. With -s ARCH, only of the texts that a device of that capability runs. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include "shim/module_image.h"
#include "tests/fuzz/ptx_answers.h"

static bool kernel_print(void *context, const struct ptx_kernel *k)
{
    char line[4096];
    (void)context;
    ptx_answer_print(k, line, sizeof line);
    printf("  %.*s: %s", (int)k->name_bytes, k->name, line);
    if (k->why) printf(" (line %u: %s)", k->why_line, k->why);
    putchar('\n');
    return true;
}

static void text_print(const char *text, size_t bytes)
{
    static const char *const statuses[] = {"complete", "partial", "stopped"};
    size_t scratch_bytes = ptx_scratch_bytes(bytes);
    void *scratch =
        mmap(NULL, scratch_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (scratch == MAP_FAILED) return;
    printf("  (%s)\n", statuses[ptx_analyse(text, bytes, NULL, scratch, scratch_bytes, kernel_print, NULL)]);
    munmap(scratch, scratch_bytes);
}

static void image_print(const void *data, size_t bytes, unsigned arch)
{
    struct module_image image;
    module_image_open(&image, data, bytes);
    int selected = arch ? module_image_select(&image, arch, false) : -1;
    if (!image.complete) printf(" malformed or not of a known form\n");
    for (unsigned i = 0; i < image.entry_count; i++) {
        const struct module_entry *e = &image.entries[i];
        const char *text;
        size_t text_bytes;
        printf(" %s %u%.1s%s\n",
               e->kind == MODULE_ENTRY_PTX     ? "PTX"
               : e->kind == MODULE_ENTRY_CUBIN ? "cubin"
                                               : "other",
               e->arch, &e->variant,
               !e->unpacked_bytes ? ""
               : e->is_zstd       ? ", zstd"
                                  : ", LZ4");
        if (arch && (int)i != selected) continue;
        if (module_image_text(&image, i, &text, &text_bytes)) text_print(text, text_bytes);
    }
    module_image_close(&image);
}

/* Containers one after another, as in .nv_fatbin. */
static void section_print(const unsigned char *data, size_t bytes, unsigned arch)
{
    for (size_t at = 0; at < bytes;) {
        size_t one = module_image_container_bytes(data + at, bytes - at);
        if (one) image_print(data + at, one, arch);
        at += one ? one : 8;
    }
}

static bool program_print(const unsigned char *data, size_t bytes, unsigned arch)
{
    Elf64_Ehdr header;
    bool any = false;
    if (bytes < sizeof header || memcmp(data, ELFMAG, SELFMAG)) return false;
    memcpy(&header, data, sizeof header);
    if (header.e_shoff > bytes || (bytes - header.e_shoff) / sizeof(Elf64_Shdr) < header.e_shnum ||
        header.e_shstrndx >= header.e_shnum)
        return false;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(data + header.e_shoff);
    const Elf64_Shdr *names = &sections[header.e_shstrndx];
    for (int i = 0; i < header.e_shnum; i++) {
        if (names->sh_offset > bytes || sections[i].sh_name > names->sh_size ||
            names->sh_size > bytes - names->sh_offset)
            return false;
        const char *name = (const char *)data + names->sh_offset + sections[i].sh_name;
        if (strcmp(name, ".nv_fatbin") && strcmp(name, "__nv_relfatbin")) continue;
        if (sections[i].sh_offset > bytes || sections[i].sh_size > bytes - sections[i].sh_offset) return false;
        section_print(data + sections[i].sh_offset, sections[i].sh_size, arch);
        any = true;
    }
    return any;
}

int main(int count, char **arguments)
{
    unsigned arch = 0;
    int first = 1;
    if (count > 2 && !strcmp(arguments[1], "-s")) arch = atoi(arguments[2]), first = 3;
    for (int i = first; i < count; i++) {
        struct stat status;
        int file = open(arguments[i], O_RDONLY);
        if (file < 0 || fstat(file, &status)) return perror(arguments[i]), 1;
        void *data = status.st_size ? mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, file, 0) : NULL;
        close(file);
        if (!data || data == MAP_FAILED) continue;
        printf("%s\n", arguments[i]);
        if (!program_print(data, status.st_size, arch)) image_print(data, status.st_size, arch);
        munmap(data, status.st_size);
    }
    return 0;
}
