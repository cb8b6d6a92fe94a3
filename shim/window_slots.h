/* What window.c asks of the slots. Nobody else includes this. */
#ifndef SHIM_WINDOW_SLOTS_H
#define SHIM_WINDOW_SLOTS_H
#include <stddef.h>
#include <stdint.h>

struct context;
struct window;

/* A buffer of so many bytes in the window, its address; 0: no room, or not now. The context's lock is held. */
uintptr_t slots_take(struct window *window, size_t bytes);
/* The buffer's slots are free again. The context's lock is held. */
void slots_give(struct window *window, uintptr_t start, size_t bytes);
/* Frees what was freed in a stream that has come to it (window_free_in_stream), in all windows of the context. Asks the
 * driver about events; no lock is held. */
void slots_collect(struct context *context);
#endif
