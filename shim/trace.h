/* Option trace_copies: every copy of a window as a line "time_ns window direction bytes waited place", for `make
 * policy-sim`. */
#ifndef SHIM_TRACE_H
#define SHIM_TRACE_H
#include "policy/policy.h"
#include "shim/window.h"

void trace_copy(const struct window *window, const struct earn_copy *copy);
/* Writes what is buffered; at exit. */
void trace_flush(void);
#endif
