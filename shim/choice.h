/* What is decided about a call site before any of its buffers is copied: by a rule of the user's, by the profile of
 * earlier runs, or by how its large buffers were used so far. Mode `auto`, and rules also in `always`.
 *
 * The files are read once, when the first context is set up, and the profile is written at exit; both are mapped, never
 * malloced. */
#ifndef SHIM_CHOICE_H
#define SHIM_CHOICE_H
#include <stdbool.h>
#include "policy/policy.h"
#include "shim/copy.h"
#include "shim/site.h"

enum choice { CHOICE_DRIVER, CHOICE_DEVICE, CHOICE_HOST, CHOICE_OPEN };

/* Reads rules and profile; a bad file gets one line and is ignored. `run` is the policy's shared state. */
void choice_start(struct earn_run *run);

/* Where a buffer of the site goes; CHOICE_OPEN: nobody says. `*past`, if not NULL, is set to what an earlier run
 * learned (false in `*known` if nothing). `*reason` is static text. */
enum choice choice_for(struct site *site, uint64_t bytes, struct earn_past *past, bool *known, const char **reason);

/* A copy of part of a buffer that lives in the driver's memory or a lendable window: evidence for a window of its own
 * next time. */
void choice_native_copy(const struct copy_request *request);
/* Does the site's next buffer larger than max_size deserve one? */
bool choice_sparse(struct site *site, struct earn_past *past);
/* Buffers were freed: remembered address ranges are stale. */
void choice_freed(void);

/* Does a rule keep everything on the device while this kernel runs? */
bool choice_kernel_on_device(const char *name);

/* From then on the profile keeps the site's buffers with the driver. */
void choice_mark(struct site *site, enum profile_mark mark);

/* Rewrites the profile, if there is one. No driver call. */
void choice_at_exit(void);
#endif
