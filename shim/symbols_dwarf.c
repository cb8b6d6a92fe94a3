/* File, line and inlined functions through libdw, if the machine has it. Its interface is declared here, so that
 * building needs no header and running no library. */
#include "shim/symbols.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "shim/arena.h"
#include "shim/log.h"

typedef struct Dwarf Dwarf;
typedef struct Dwarf_CU Dwarf_CU;
typedef struct Dwarf_Line Dwarf_Line;
typedef struct Dwarf_Files Dwarf_Files;
typedef uint64_t Dwarf_Off, Dwarf_Addr, Dwarf_Word;
typedef struct {
    void *addr;
    Dwarf_CU *cu;
    void *abbrev;
    long padding;
} Dwarf_Die;
typedef struct {
    unsigned code, form;
    unsigned char *valp;
    Dwarf_CU *cu;
} Dwarf_Attribute;

enum {
    DWARF_READ = 0,
    TAG_INLINED_SUBROUTINE = 0x1d,
    TAG_SUBPROGRAM = 0x2e,
    ATTRIBUTE_LINKAGE_NAME = 0x6e,
    ATTRIBUTE_CALL_FILE = 0x58,
    ATTRIBUTE_CALL_LINE = 0x59,
    ATTRIBUTE_MIPS_LINKAGE_NAME = 0x2007
};

#define LIBDW(FUNCTION)                                                                                                \
    FUNCTION(Dwarf *, dwarf_begin, (int fd, int command))                                                              \
    FUNCTION(int, dwarf_end, (Dwarf * dwarf))                                                                          \
    FUNCTION(Dwarf_Die *, dwarf_addrdie, (Dwarf * dwarf, Dwarf_Addr address, Dwarf_Die * unit))                        \
    FUNCTION(int, dwarf_nextcu,                                                                                        \
             (Dwarf * dwarf, Dwarf_Off offset, Dwarf_Off * next, size_t * header, Dwarf_Off * abbrev,                  \
              uint8_t * address, uint8_t * width))                                                                     \
    FUNCTION(Dwarf_Die *, dwarf_offdie, (Dwarf * dwarf, Dwarf_Off offset, Dwarf_Die * die))                            \
    FUNCTION(int, dwarf_haspc, (Dwarf_Die * die, Dwarf_Addr address))                                                  \
    FUNCTION(int, dwarf_getscopes, (Dwarf_Die * unit, Dwarf_Addr address, Dwarf_Die * *scopes))                        \
    FUNCTION(int, dwarf_getscopes_die, (Dwarf_Die * die, Dwarf_Die * *scopes))                                         \
    FUNCTION(int, dwarf_tag, (Dwarf_Die * die))                                                                        \
    FUNCTION(const char *, dwarf_diename, (Dwarf_Die * die))                                                           \
    FUNCTION(Dwarf_Attribute *, dwarf_attr_integrate, (Dwarf_Die * die, unsigned name, Dwarf_Attribute *attribute))    \
    FUNCTION(Dwarf_Attribute *, dwarf_attr, (Dwarf_Die * die, unsigned name, Dwarf_Attribute *attribute))              \
    FUNCTION(const char *, dwarf_formstring, (Dwarf_Attribute * attribute))                                            \
    FUNCTION(int, dwarf_formudata, (Dwarf_Attribute * attribute, Dwarf_Word * value))                                  \
    FUNCTION(Dwarf_Line *, dwarf_getsrc_die, (Dwarf_Die * unit, Dwarf_Addr address))                                   \
    FUNCTION(const char *, dwarf_linesrc, (Dwarf_Line * line, Dwarf_Word * time, Dwarf_Word * length))                 \
    FUNCTION(int, dwarf_lineno, (Dwarf_Line * line, int *number))                                                      \
    FUNCTION(int, dwarf_getsrcfiles, (Dwarf_Die * unit, Dwarf_Files * *files, size_t * count))                         \
    FUNCTION(const char *, dwarf_filesrc, (Dwarf_Files * files, size_t index, Dwarf_Word * time, Dwarf_Word * length))

static struct {
    bool tried, found;
#define POINTER(type, name, parameters) type(*name) parameters;
    LIBDW(POINTER)
#undef POINTER
    char *(*demangle)(const char *mangled, char *buffer, size_t *bytes, int *status);
    bool demangle_tried;
} libdw;

static bool libdw_load(void)
{
    if (libdw.tried) return libdw.found;
    libdw.tried = true;
    void *library = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library) return false;
    bool all = true;
#define TAKE(type, name, parameters)                                                                                   \
    *(void **)&libdw.name = dlsym(library, #name);                                                                     \
    all &= libdw.name != NULL;
    LIBDW(TAKE)
#undef TAKE
    return libdw.found = all;
}

static const char *copy_of(const char *string)
{
    size_t bytes = strlen(string) + 1;
    char *copy = arena_alloc(bytes);
    if (copy) memcpy(copy, string, bytes);
    return copy;
}

const char *symbol_readable(const char *name)
{
    if (name[0] != '_' || name[1] != 'Z') return copy_of(name);
    if (!libdw.demangle_tried) {
        libdw.demangle_tried = true;
        *(void **)&libdw.demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle"); /* a program in C++ has it */
    }
    int status = -1;
    char *readable = libdw.demangle ? libdw.demangle(name, NULL, NULL, &status) : NULL;
    const char *copy = copy_of(status == 0 && readable ? readable : name);
    free(readable);
    return copy;
}

struct dwarf_file *dwarf_file_open(int fd)
{
    Dwarf *dwarf = libdw_load() ? libdw.dwarf_begin(fd, DWARF_READ) : NULL;
    return (struct dwarf_file *)dwarf;
}

void dwarf_file_close(struct dwarf_file *file) { libdw.dwarf_end((Dwarf *)file); }

/* The compilation unit of an address: from the index that GCC writes, else by asking each. */
static bool unit_of(Dwarf *dwarf, Dwarf_Addr address, Dwarf_Die *unit)
{
    if (libdw.dwarf_addrdie(dwarf, address, unit)) return true;
    Dwarf_Off offset = 0, next;
    size_t header;
    while (libdw.dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL) == 0) {
        if (libdw.dwarf_offdie(dwarf, offset + header, unit) && libdw.dwarf_haspc(unit, address) > 0) return true;
        offset = next;
    }
    return false;
}

static const char *function_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = NULL;
    if (libdw.dwarf_attr_integrate(die, ATTRIBUTE_LINKAGE_NAME, &attribute) ||
        libdw.dwarf_attr_integrate(die, ATTRIBUTE_MIPS_LINKAGE_NAME, &attribute))
        name = libdw.dwarf_formstring(&attribute);
    const char *readable = name ? symbol_readable(name) : NULL;
    if (readable && strncmp(readable, "_Z", 2) != 0) return readable;
    name = libdw.dwarf_diename(die); /* short, but better than a mangled one */
    return name ? copy_of(name) : readable;
}

static void frame_line(struct symbol_frame *frame, Dwarf_Die *unit, Dwarf_Addr address)
{
    Dwarf_Line *line = libdw.dwarf_getsrc_die(unit, address);
    const char *file = line ? libdw.dwarf_linesrc(line, NULL, NULL) : NULL;
    int number = 0;
    if (!file) return;
    libdw.dwarf_lineno(line, &number);
    frame->file = copy_of(file);
    frame->line = number > 0 ? (uint32_t)number : 0;
}

/* Where the inlined function `die` was called. */
static void frame_call(struct symbol_frame *frame, Dwarf_Die *unit, Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Word file = 0, line = 0;
    Dwarf_Files *files;
    size_t count;
    if (libdw.dwarf_attr(die, ATTRIBUTE_CALL_LINE, &attribute)) libdw.dwarf_formudata(&attribute, &line);
    if (libdw.dwarf_attr(die, ATTRIBUTE_CALL_FILE, &attribute)) libdw.dwarf_formudata(&attribute, &file);
    if (libdw.dwarf_getsrcfiles(unit, &files, &count) == 0 && file < count) {
        const char *name = libdw.dwarf_filesrc(files, file, NULL, NULL);
        frame->file = name ? copy_of(name) : NULL;
    }
    frame->line = (uint32_t)line;
}

/* The functions that hold the address, innermost first, as the compiler inlined them. */
static void frames_of(Dwarf_Die *unit, Dwarf_Addr address, struct symbol *symbol)
{
    struct symbol_frame frames[SYMBOL_FRAMES_MAX] = {{0}};
    Dwarf_Die *innermost = NULL, *scopes = NULL;
    unsigned count = 0;
    int found = libdw.dwarf_getscopes(unit, address, &innermost);
    int levels = found > 0 ? libdw.dwarf_getscopes_die(&innermost[0], &scopes) : 0;
    frame_line(&frames[0], unit, address);
    for (int i = 0; i < levels && count < SYMBOL_FRAMES_MAX; i++) {
        int tag = libdw.dwarf_tag(&scopes[i]);
        if (tag != TAG_INLINED_SUBROUTINE && tag != TAG_SUBPROGRAM) continue;
        frames[count++].function = function_name(&scopes[i]);
        if (tag == TAG_SUBPROGRAM) break;
        if (count < SYMBOL_FRAMES_MAX) frame_call(&frames[count], unit, &scopes[i]);
    }
    free(scopes);
    free(innermost);
    if (!frames[0].file && !count) return;
    if (!count) frames[count++].function = symbol->frames[0].function;
    if (!frames[count - 1].function) frames[count - 1].function = symbol->frames[0].function;
    memcpy(symbol->frames, frames, sizeof frames);
    symbol->count = count;
}

void dwarf_file_resolve(struct dwarf_file *file, uint64_t address, struct symbol *symbol)
{
    Dwarf_Die unit;
    if (unit_of((Dwarf *)file, address, &unit)) frames_of(&unit, address, symbol);
}
