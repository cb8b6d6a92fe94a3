#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "shim/python.h"

static const struct python_layout layout = {.code_first_line = 72,
                                            .code_file = 112,
                                            .code_function = 128,
                                            .code_lines = 144,
                                            .code_instructions = 184,
                                            .text_bytes = 48};

Test(python, memory_that_cannot_be_read_is_not)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), to[64];
    munmap(pages + 4096, 4096);
    memset(pages, 'x', 4096);
    cr_assert(python_read((uintptr_t)pages + 4096 - 64, to, 64));
    cr_assert_eq(to[63], 'x');
    cr_assert_not(python_read((uintptr_t)pages + 4096 - 63, to, 64));
    cr_assert_not(python_read((uintptr_t)pages + 4096, to, 1));
    cr_assert_not(python_read(0, to, 8));
    cr_assert_not(python_read(UINTPTR_MAX - 7, to, 64));
    mprotect(pages, 4096, PROT_NONE);
    cr_assert_not(python_read((uintptr_t)pages, to, 8));
}

/* Objects as the interpreter has them, with words taken at random from what they point to and from nowhere. */
Test(python, whatever_lies_in_an_object_nothing_crashes)
{
    enum { WORDS = 256 };
    uintptr_t *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap((char *)memory + 4096, 4096);
    python_types = (struct python_types){0x1000, 0x2000, 0x3000};
    srand(1);
    unsigned named = 0;
    for (int round = 0; round < 20000; round++) {
        for (int i = 0; i < WORDS; i += 2) {
            const uintptr_t words[] = {(uintptr_t)(memory + rand() % 300 * 2),
                                       (uintptr_t)(memory + rand() % WORDS),
                                       (uintptr_t)rand(),
                                       (uintptr_t)rand() << 33,
                                       12,
                                       0x0041414141414141};
            memory[i] = words[rand() % 6];
            memory[i + 1] = (uintptr_t)(1 + rand() % 3) << 12; /* a type */
        }
        struct python_slot slot = {.code = (uintptr_t)(memory + rand() % (WORDS / 2) * 2),
                                   .instruction = (uintptr_t)memory};
        struct python_frame frame = {NULL, NULL, 0};
        if (python_name(&layout, &slot, &frame)) {
            named++;
            cr_assert_not_null(frame.file);
            cr_assert_not_null(frame.function);
        }
    }
    cr_assert_gt(named, 0);
}
