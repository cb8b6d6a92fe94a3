#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "shim/module_image.h"
#include "shim/unpack.h"

#define TEXT "// x\n.version 9.0\n"

/* A fat binary put together by hand. */
struct built {
    unsigned char bytes[8192];
    size_t used;
};

static void put(struct built *b, const void *data, size_t bytes)
{
    memcpy(b->bytes + b->used, data, bytes);
    b->used += bytes;
}

static void member_put(struct built *b, unsigned kind, unsigned arch, uint64_t flags, const void *payload, size_t bytes,
                       size_t unpacked)
{
    uint64_t padded = (bytes + 7) & ~7ul;
    unsigned char header[64] = {0};
    memcpy(header, &(uint16_t){kind}, 2);
    memcpy(header + 4, &(uint32_t){64}, 4);
    memcpy(header + 8, &padded, 8);
    memcpy(header + 16, &(uint32_t){unpacked ? bytes : 0}, 4);
    memcpy(header + 28, &(uint32_t){arch}, 4);
    memcpy(header + 40, &flags, 8);
    memcpy(header + 56, &(uint64_t){unpacked}, 8);
    put(b, header, sizeof header);
    put(b, payload, bytes);
    put(b, (char[8]){0}, padded - bytes);
    memcpy(b->bytes + 8, &(uint64_t){b->used - 16}, 8);
}

static void start(struct built *b)
{
    b->used = 0;
    put(b, &(uint32_t){0xba55ed50}, 4);
    put(b, &(uint16_t){1}, 2);
    put(b, &(uint16_t){16}, 2);
    put(b, &(uint64_t){0}, 8);
}

/* A cubin that says what it was compiled from. */
static size_t cubin_make(unsigned char *to, unsigned virtual_arch)
{
    struct {
        Elf64_Ehdr header;
        Elf64_Nhdr note;
        char name[12];
        uint16_t value[4];
        Elf64_Shdr section;
    } cubin = {.note = {12, 8, 1000}, .name = "NVIDIA Corp", .value = {2, virtual_arch, 130, 0}};
    memcpy(cubin.header.e_ident, ELFMAG, SELFMAG);
    cubin.header.e_ident[EI_CLASS] = ELFCLASS64;
    cubin.header.e_ident[EI_ABIVERSION] = 8;
    cubin.header.e_shoff = (char *)&cubin.section - (char *)&cubin;
    cubin.header.e_shentsize = sizeof(Elf64_Shdr);
    cubin.header.e_shnum = 1;
    cubin.section.sh_type = SHT_NOTE;
    cubin.section.sh_offset = (char *)&cubin.note - (char *)&cubin;
    cubin.section.sh_size = sizeof cubin.note + sizeof cubin.name + sizeof cubin.value;
    memcpy(to, &cubin, sizeof cubin);
    return sizeof cubin;
}

static void text_expect(struct module_image *image, unsigned entry, const char *expected)
{
    const char *text;
    size_t bytes;
    cr_assert(module_image_text(image, entry, &text, &bytes));
    cr_assert_eq(bytes, strlen(expected));
    cr_assert_arr_eq(text, expected, bytes);
}

Test(module_image, ptx_text_is_itself)
{
    struct module_image image;
    module_image_open(&image, TEXT, 0);
    text_expect(&image, 0, TEXT);
    cr_assert_eq(module_image_select(&image, 90, false), 0);
    module_image_open(&image, TEXT "\0junk", sizeof TEXT + 4);
    text_expect(&image, 0, TEXT);
    module_image_open(&image, "", 0);
    text_expect(&image, 0, "");
    module_image_close(&image);
}

Test(module_image, a_cubin_holds_no_ptx)
{
    struct module_image image;
    unsigned char cubin[512];
    const char *text;
    size_t bytes = cubin_make(cubin, 90);
    module_image_open(&image, cubin, 0);
    cr_assert_eq(module_image_select(&image, 90, false), -1);
    cr_assert_not(module_image_text(&image, 0, &text, &bytes));
}

Test(module_image, fat_binaries_are_read_bare_and_wrapped)
{
    struct module_image image;
    struct built b;
    start(&b);
    member_put(&b, MODULE_ENTRY_PTX, 90, 0x11, TEXT, sizeof TEXT, 0);
    struct {
        uint32_t magic, version;
        const void *data, *others;
    } wrapper = {0x466243b1, 1, b.bytes, NULL};
    module_image_open(&image, b.bytes, 0);
    text_expect(&image, 0, TEXT);
    module_image_open(&image, b.bytes, b.used);
    text_expect(&image, 0, TEXT);
    module_image_open(&image, &wrapper, 0);
    text_expect(&image, 0, TEXT);
    cr_assert_eq(module_image_select(&image, 90, false), 0);
    wrapper.version = 2; /* one of several: the others are not known */
    module_image_open(&image, &wrapper, 0);
    cr_assert_eq(module_image_select(&image, 90, false), -1);
}

Test(module_image, only_the_text_that_the_code_was_made_from_is_selected)
{
    struct module_image image;
    struct built b;
    unsigned char from_90[512], from_80[512];
    size_t bytes_90 = cubin_make(from_90, 90), bytes_80 = cubin_make(from_80, 80);
    start(&b);
    member_put(&b, MODULE_ENTRY_CUBIN, 90, 0x11, from_90, bytes_90, 0);
    member_put(&b, MODULE_ENTRY_PTX, 75, 0x11, TEXT, sizeof TEXT, 0);
    module_image_open(&image, b.bytes, b.used);
    cr_assert_eq(module_image_select(&image, 90, false), -1, "code of compute_90, text of compute_75");
    cr_assert_eq(module_image_select(&image, 90, true), 1, "the text is compiled");
    cr_assert_eq(module_image_select(&image, 86, false), 1, "no code for this device");
    cr_assert_eq(module_image_select(&image, 70, false), -1, "nothing for this device");
    member_put(&b, MODULE_ENTRY_PTX, 90, 0x11, TEXT, sizeof TEXT, 0);
    module_image_open(&image, b.bytes, b.used);
    cr_assert_eq(module_image_select(&image, 90, false), 2);
    cr_assert_eq(module_image_select(&image, 100, false), 2, "the highest text that the device can compile");
    member_put(&b, MODULE_ENTRY_PTX, 90, 0x100011, TEXT, sizeof TEXT, 0);
    module_image_open(&image, b.bytes, b.used);
    cr_assert_eq(module_image_select(&image, 90, false), 2, "a text of compute_90a is another one");
    cr_assert_eq(module_image_select(&image, 90, true), -1, "which of the two is compiled is not known");

    start(&b);
    member_put(&b, MODULE_ENTRY_CUBIN, 90, 0x11, from_80, bytes_80, 0);
    member_put(&b, MODULE_ENTRY_PTX, 90, 0x11, TEXT, sizeof TEXT, 0);
    member_put(&b, MODULE_ENTRY_PTX, 80, 0x11, TEXT, sizeof TEXT, 0);
    module_image_open(&image, b.bytes, b.used);
    cr_assert_eq(module_image_select(&image, 90, false), 2, "code of compute_80 for sm_90");
    member_put(&b, 8, 80, 0x11, TEXT, sizeof TEXT, 0);
    module_image_open(&image, b.bytes, b.used);
    cr_assert_eq(module_image_select(&image, 120, false), -1, "intermediate code may be taken instead");
}

Test(module_image, lz4_is_unpacked)
{
    /* "abcabcabcabcX": literals abc, match of 9 at distance 3, literal X. */
    static const unsigned char packed[] = {0x35, 'a', 'b', 'c', 3, 0, 0x10, 'X'};
    struct module_image image;
    struct built b;
    start(&b);
    member_put(&b, MODULE_ENTRY_PTX, 90, 0x2011, packed, sizeof packed, 13);
    module_image_open(&image, b.bytes, b.used);
    text_expect(&image, 0, "abcabcabcabcX");
    text_expect(&image, 0, "abcabcabcabcX");
    module_image_close(&image);
}

Test(module_image, lz4_reads_and_writes_within_bounds)
{
    static const unsigned char packed[] = {0x35, 'a', 'b', 'c', 3, 0, 0x10, 'X'};
    unsigned char out[13];
    cr_assert(unpack_lz4(out, 13, packed, sizeof packed));
    cr_assert_not(unpack_lz4(out, 12, packed, sizeof packed));
    cr_assert_not(unpack_lz4(malloc(14), 14, packed, sizeof packed));
    for (size_t bytes = 0; bytes < sizeof packed; bytes++) cr_assert_not(unpack_lz4(out, 13, packed, bytes));
    srand(1);
    for (int round = 0; round < 200000; round++) {
        unsigned char *noise = malloc(24), *to = malloc(64);
        for (int i = 0; i < 24; i++) noise[i] = rand() >> 7;
        unpack_lz4(to, 64, noise, 24);
        free(noise);
        free(to);
    }
}

Test(module_image, zstd_is_unpacked_where_it_is_installed)
{
    void *library = dlopen("libzstd.so.1", RTLD_NOW);
    if (!library) cr_skip_test("no libzstd");
    size_t (*pack)(void *, size_t, const void *, size_t, int);
    *(void **)&pack = dlsym(library, "ZSTD_compress");
    unsigned char packed[512];
    size_t bytes = pack(packed, sizeof packed, TEXT, sizeof TEXT, 3);
    struct module_image image;
    struct built b;
    const char *text;
    start(&b);
    member_put(&b, MODULE_ENTRY_PTX, 90, 0x8011, packed, bytes, sizeof TEXT);
    packed[bytes - 3] ^= 0x55;
    member_put(&b, MODULE_ENTRY_PTX, 80, 0x8011, packed, bytes - 5, sizeof TEXT);
    module_image_open(&image, b.bytes, b.used);
    text_expect(&image, 0, TEXT);
    cr_assert_not(module_image_text(&image, 1, &text, &bytes), "a frame that ends early");
    module_image_close(&image);
}

Test(module_image, malformed_images_hold_nothing_and_are_not_read_past_their_end)
{
    static const unsigned char packed[] = {0x35, 'a', 'b', 'c', 3, 0, 0x10, 'X'};
    struct built b;
    unsigned char cubin[512];
    start(&b);
    member_put(&b, MODULE_ENTRY_CUBIN, 90, 0x11, cubin, cubin_make(cubin, 90), 0);
    member_put(&b, MODULE_ENTRY_PTX, 90, 0x11, TEXT, sizeof TEXT, 0);
    member_put(&b, MODULE_ENTRY_PTX, 80, 0x2011, packed, sizeof packed, 13);
    srand(2);
    for (int round = 0; round < 100000; round++) {
        size_t bytes = round & 1 ? b.used : (size_t)rand() % b.used + 1;
        unsigned char *image_bytes = malloc(bytes);
        struct module_image image;
        memcpy(image_bytes, b.bytes, bytes);
        /* The first word stays: a wrapper's pointers are the caller's word. */
        for (int n = rand() % 4; n && bytes > 4; n--)
            image_bytes[4 + rand() % (bytes - 4)] = rand() & 1 ? rand() : 0xff;
        module_image_open(&image, image_bytes, bytes);
        module_image_select(&image, 90, round & 2);
        for (unsigned i = 0; i < image.entry_count; i++) {
            const char *text;
            size_t text_bytes;
            /* Sizes that a mutation made huge would only cost time. */
            if (image.entries[i].unpacked_bytes < 1 << 20) module_image_text(&image, i, &text, &text_bytes);
        }
        if (bytes >= 4 && bytes < b.used) cr_assert(!image.complete);
        module_image_close(&image);
        free(image_bytes);
    }
}

Test(module_image, more_members_than_are_kept_select_nothing)
{
    struct module_image image;
    struct built b;
    start(&b);
    for (int i = 0; i <= MODULE_IMAGE_ENTRIES; i++) member_put(&b, MODULE_ENTRY_PTX, 50 + i, 0x11, "x", 2, 0);
    module_image_open(&image, b.bytes, b.used);
    cr_assert_eq(image.entry_count, MODULE_IMAGE_ENTRIES);
    cr_assert_eq(module_image_select(&image, 90, false), -1);
}
