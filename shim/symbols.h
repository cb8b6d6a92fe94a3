/* Names for code addresses, at report time: function, file and line where the program was built with -g (through libdw
 * if the machine has it), else the symbol of the file's own table.
 *
 * Files are read as they are on disk now; one that was replaced since (another build-id) is not believed. libdw and the
 * C++ demangler use the program's malloc, so this is called with no lock held, and only from the exit report. */
#ifndef SHIM_SYMBOLS_H
#define SHIM_SYMBOLS_H
#include <stddef.h>
#include <stdint.h>

#define SYMBOL_FRAMES_MAX 8

/* One level: the function itself, or one that the compiler inlined. NULL and 0 where unknown. */
struct symbol_frame {
    const char *function, *file;
    uint32_t line;
};

struct symbol {
    uintptr_t pc;                                  /* a return address */
    unsigned module;                               /* its number, 0: unknown */
    unsigned count;                                /* of frames; 0: nothing is known */
    struct symbol_frame frames[SYMBOL_FRAMES_MAX]; /* innermost first, the real function last */
    uint64_t in_function;                          /* bytes from the real function's start */
};

/* Fills in frames of all `symbols`; puts them into another order (by module, then pc) and equal ones together: the
 * number that is left. Strings live as long as the process. */
size_t symbols_resolve(struct symbol *symbols, size_t count);
/* The resolved one, NULL if there is none. */
const struct symbol *symbols_find(const struct symbol *symbols, size_t count, unsigned module, uintptr_t pc);

/* Inside the room: lines from the debug information of the open file `fd`, for addresses in the file (symbols_dwarf.c).
 */
struct dwarf_file;
struct dwarf_file *dwarf_file_open(int fd);
void dwarf_file_close(struct dwarf_file *file);
void dwarf_file_resolve(struct dwarf_file *file, uint64_t address, struct symbol *symbol);
/* A copy of the name as C++ writes it, or of the name itself. */
const char *symbol_readable(const char *name);
#endif
