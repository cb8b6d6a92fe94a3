/* Where windows live: drives policy/ with what happens to them, and makes the moves it asks for. */
#ifndef SHIM_PLACEMENT_H
#define SHIM_PLACEMENT_H
#include "shim/copy.h"
#include "shim/launch.h"
#include "shim/window.h"

/* Where a new buffer goes. False: to the driver. `context` is current. */
bool placement_for(struct context *context, struct site *site, size_t bytes, enum window_place *place);

/* A buffer larger than max_size whose site deserves a window of its own for it. */
bool placement_for_large(struct context *context, struct site *site, size_t bytes, enum window_place *place);
/* The device is out of memory: may the buffer live on the host instead (option spill)? */
bool placement_may_spill(struct context *context);

/* Does anybody want the time of this window's copies? */
bool placement_wants_time(void);
/* After a copy from or to a window's buffer; the gate is not held. `elided`: done by the CPU. */
void placement_copied(struct window *window, const struct copy_request *request, bool elided, uint64_t started_ns);

/* A window was made, or given to another site (context's lock held, no driver call); what it holds has changed. */
void placement_window(struct window *window);
void placement_bytes(struct window *window);
void placement_window_gone(struct window *window);

enum placement_answer { PLACEMENT_MOVED, PLACEMENT_BUSY, PLACEMENT_FAILED };
/* Moves the window if the context is quiet and nothing forbids it. Asks, never waits. `reason` is static text for the
 * report. */
enum placement_answer placement_move(struct window *window, enum window_place place, const char *reason);

/* Before a launch: outside the gate. */
void placement_launch(const struct launch *launch);

/* The backing of the window at this address must not change from now on (a graph or texture keeps it): moved to the
 * device first if that can be done at once, and frozen where it is. Nothing if the address is not in a window. */
void placement_freeze(uintptr_t address, const char *reason);

/* Option stress_moves: at a safe point (outside the gate), moves some window of the current context by the dice. */
void placement_stress(void);
#define PLACEMENT_STRESS()                                                                                             \
    do {                                                                                                               \
        if (__builtin_expect(shim.options.stress_moves != 0, 0)) placement_stress();                                   \
    } while (0)
#endif
