/* Watched address ranges: a touch of a page that is not there stops the toucher, be it program code or a system call,
 * until the page was put there. Linux userfaultfd; one thread answers, and it never calls the driver: whoever touched
 * may hold the driver's locks.
 *
 * The descriptor lives in a file table of that thread's own, so that a program which closes all descriptors does not
 * close it (its ranges would silently read as zeros) and no child inherits it. */
#ifndef SHIM_LEND_WATCH_H
#define SHIM_LEND_WATCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* May this process watch memory, system calls included? Asked of the system once; cheap. */
bool watch_possible(void);
/* Starts the thread at the first call; false: no watching here. `answer` is called by that thread for each touch of a
 * watched page that is not there; it uses watch_fill and watch_zero. */
bool watch_start(void (*answer)(uintptr_t address));

/* Begins and ends watching whole pages. By one thread at a time, which holds no lock that `answer` takes. False: the
 * system refused (nothing is watched). Ending wakes whoever waits. */
bool watch_begin(uintptr_t address, size_t bytes);
bool watch_end(uintptr_t address, size_t bytes);

/* For `answer` only: puts a copy of memory, or zeros, at watched pages that are not there and wakes whoever waits for
 * them; pages that are there stay as they are. */
void watch_fill(uintptr_t to, uintptr_t from, size_t bytes);
void watch_zero(uintptr_t to, size_t bytes);

void watch_after_fork_child(void);
#endif
