/* The executables and libraries that call sites lie in, remembered by what they were when they were seen: a library
 * that is closed later, or whose address another one takes, can still be named in the report.
 *
 * Look-ups take no lock and make no system call; a library seen for the first time costs a few us. No malloc. */
#ifndef SHIM_MODULES_H
#define SHIM_MODULES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODULES_MOST        4096
#define MODULE_BUILD_ID_MAX 20

struct module {
    uintptr_t start, end; /* where it was mapped */
    uintptr_t bias;       /* address - bias is the address in the file */
    const char *path;     /* absolute; of the main program too */
    const char *name;     /* the last part of the path */
    uint64_t identity;    /* hash of the build-id, or of the name without one: the same in every run */
    uint8_t build_id[MODULE_BUILD_ID_MAX];
    uint8_t build_id_bytes; /* 0: it has none */
    bool main;              /* the program itself */
    bool cuda;              /* one of NVIDIA's libraries */
    bool runtime;           /* cuda: the driver or the runtime, which only pass calls on */
    bool system;            /* the C library and the loader */
    bool interpreter;       /* CPython itself */
};

/* Number of the module that holds code address `pc`; 0: none (generated code), or too many modules. */
unsigned module_of(uintptr_t pc);

/* NULL for 0. */
const struct module *module_get(unsigned number);

/* Start of the loaded object that holds the address, 0: none. `*constant`: in a part of it that is never written. Takes
 * no lock. */
uintptr_t module_object(uintptr_t address, bool *constant);

/* Is this address in the library that this code is part of? */
bool module_is_own(uintptr_t pc);

void module_after_fork(void);
#endif
