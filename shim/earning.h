/* Mode `auto`: tells policy/earn what happens to each window and makes the moves it asks for.
 *
 * Every window has a lock of its own for its policy state, taken for some ns and never across a driver call; who finds
 * it taken leaves the event out. */
#ifndef SHIM_EARNING_H
#define SHIM_EARNING_H
#include "policy/policy.h"
#include "shim/copy.h"
#include "shim/launch.h"
#include "shim/window.h"

/* Reads the cost table; once, in mode auto, when the first context is set up. */
void earning_start(void);

/* The table, with this GPU's calibration and what the run observed; NULL before earning_start. */
const struct cost *earning_cost(void);

/* Where a buffer of the site goes. False: to the driver. */
bool earning_initial(struct site *site, size_t bytes, enum window_place *place);
/* Where the site's windows ended; `*decided`: this run learned it. False: it has none. */
bool earning_past(struct site *site, struct earn_past *past, bool *decided);
/* A window was made, or given to another site; it is nobody else's yet. */
void earning_window(struct window *window);
void earning_window_gone(struct window *window);
/* What it holds has changed. */
void earning_bytes(struct window *window);
/* The window's backing changed for another reason, or must not change any more. */
void earning_moved(struct window *window, enum window_place place);
void earning_frozen(struct window *window, const char *reason);

/* Adds what the windows saved and lost to their sites, for the report. */
void earning_at_exit(void);

/* After a copy; moves the window if it has earned that. The gate is not held. */
void earning_copied(struct window *window, const struct copy_request *request);
/* Before a launch; the gate is not held. */
void earning_launch(const struct launch *launch);
#endif
