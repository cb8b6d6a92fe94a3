/*
 * The PTX inside a module image: what a program gives to cuModuleLoadData(Ex), cuLibraryLoadData or
 * cuModuleLoadFatBinary.
 *
 * Known images: PTX text; a cubin (ELF, holds no PTX); a fat binary, bare (0xBA55ED50) or behind its wrapper
 * (0x466243b1), whose PTX is plain, LZ4 or zstd compressed. zstd is asked of libzstd.so.1, opened at its first use;
 * without it such a text does not exist here. Anything else, and anything malformed, holds no PTX; that is no error.
 *
 * A fat binary often holds machine code next to PTX of another architecture, and code may differ by __CUDA_ARCH__.
 * module_image_select answers only a text that the code which the driver runs was made from.
 *
 * Memory comes from mmap and is the caller's until module_image_close; the image itself must stay as it is until then.
 * Of it only what its headers name is read, and nothing past `bytes`. No locks; one image is used by one thread at a
 * time.
 */
#ifndef ZCSHIM_SHIM_MODULE_IMAGE_H
#define ZCSHIM_SHIM_MODULE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODULE_IMAGE_ENTRIES 64

enum module_entry_kind { MODULE_ENTRY_PTX = 1, MODULE_ENTRY_CUBIN = 2 }; /* others exist and are kept as numbers */

/* One member of a fat binary, or the whole of another image. */
struct module_entry {
    unsigned kind;
    unsigned arch;         /* 90 for sm_90 and compute_90; 0: of a bare text */
    unsigned virtual_arch; /* of a cubin: what it was compiled from; 0: not known */
    char variant;          /* 'a' or 'f' as in sm_90a, sm_100f; else 0 */
    const unsigned char *payload;
    size_t payload_bytes;
    size_t unpacked_bytes; /* 0: the payload is not compressed */
    bool is_zstd;
    void *unpacked; /* NULL until asked for */
};
struct module_image {
    struct module_entry entries[MODULE_IMAGE_ENTRIES];
    unsigned entry_count;
    bool complete; /* all members of the image are in entries */
};

/* The container behind a fat binary's wrapper that holds nothing else; any other image itself. */
const void *module_image_content(const void *image);

/* `bytes` 0: the size is not known, the image's own headers (or the text's terminating NUL) bound it. */
void module_image_open(struct module_image *image, const void *data, size_t bytes);
void module_image_close(struct module_image *image);

/* The text of a PTX entry, unpacked if need be; false: none. Not terminated. */
bool module_image_text(struct module_image *image, unsigned entry, const char **text, size_t *bytes);

/*
 * The entry whose text describes what the driver runs on a device of compute capability `arch` (90 for 9.0); -1: none,
 * or not certain. `compiles_ptx`: the driver was told to compile PTX although there is machine code
 * (CUDA_FORCE_PTX_JIT, CU_PREFER_PTX).
 */
int module_image_select(struct module_image *image, unsigned arch, bool compiles_ptx);

/* Size of a fat binary container that starts at data, 0 if none does: for walking a section that holds several. */
size_t module_image_container_bytes(const void *data, size_t bytes);

#endif
