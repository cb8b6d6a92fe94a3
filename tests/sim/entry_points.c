/* The table behind cuGetProcAddress. Apart, since it wants the symbols' addresses and not their types. */
#include <stdbool.h>
#include <stddef.h>

#define ENTRY(name, version, per_thread, symbol) extern void symbol(void);
#include "entry_points.def"
#undef ENTRY

const struct {
    const char *name;
    int version;
    bool per_thread;
    void (*function)(void);
} entry_points[] = {
#define ENTRY(name, version, per_thread, symbol) {name, version, per_thread, symbol},
#include "entry_points.def"
#undef ENTRY
    {NULL, 0, false, NULL},
};
