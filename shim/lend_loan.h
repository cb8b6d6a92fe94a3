/* One loan: its states and how they change. For lend.c only.
 *
 *            loan_make             loan_lend
 *   no loan ----------> LOAN_HELD -----------> LOAN_LENT
 *      ^                    |                      |
 *      +---- loan_carry ----+------ loan_return ---+        (also loan_drop, from both)
 *
 * HELD: the block's pages lie aside, watched addresses are left at the block, the device memory behind the window is
 * stale. LENT: they are the window's backing, registered; the device memory is held but not mapped. `tied`: the block
 * still counts on these pages, so nobody may write them; loan_untie gives the block what is its own.
 *
 * The turn (lend.c) is held for every function here, the submission gate is not, unless said otherwise. The turn and
 * loans.lock together guard all fields. The watching thread takes the lock, so nobody makes a driver call, touches
 * memory of the program's, or waits for anything while holding it, and signals are held off: a handler may touch a lent
 * block. Who is inside the gate reads `state` and `tied` without it: meanwhile no loan is made, and each change is
 * stored when all that it promises holds. */
#ifndef SHIM_LEND_LOAN_H
#define SHIM_LEND_LOAN_H
#include "shim/lock.h"
#include "shim/window.h"

#define LOANS_MOST 32
#define LOAN_UNIT  ((size_t)2 << 20)

enum loan_state { LOAN_NONE, LOAN_COMING /* watched, its pages still at the block */, LOAN_HELD, LOAN_LENT };

struct loan {
    _Atomic int state; /* enum loan_state */
    _Atomic bool tied;
    bool patched;          /* the pages lie in several mappings */
    struct window *window; /* NULL: the probe's */
    uintptr_t host;        /* the lent part of the block: whole units */
    uint32_t units;
    uint32_t touched_count;
    uint64_t *touched; /* of each unit: the block has its own copy (or its pages) again */
    uintptr_t at;      /* where the pages are: the place aside, or the window */
    size_t total;      /* of the buffer, from `at`; what is not whole units is a copy */
    uintptr_t aside;   /* addresses of our own, LOAN_UNIT-aligned; 0: given back */
    bool judged;       /* it is known whether it was worth it */
    uint32_t again;    /* uploads of the same block since */
    double spent_ns;   /* most that kernels have spent reading it */
};

extern struct loans {
    struct lock lock;
    struct loan entries[LOANS_MOST];
} loans;

/* Watching works here, system calls included: lends and takes back a page of our own. Once. */
bool loan_probe(void);

/* The pages of [host, host + window's buffer) go aside. The gate is closed and the context quiet. NULL: nothing done.
 */
struct loan *loan_make(struct window *window, uintptr_t host);
/* HELD to LENT. False: still HELD. Does not wait. */
bool loan_lend(struct loan *loan);
/* HELD: copies to the device memory, as the upload would have been, and ends. */
CUresult loan_carry(struct loan *loan);
/* LENT: to the device memory, and ends. The gate is closed and the context quiet. False: still LENT. */
bool loan_return(struct loan *loan);
/* Ends without keeping the buffer's bytes: `map`: the device memory is behind the window again, else nothing. The gate
 * is closed and the context quiet. False: still there. */
bool loan_drop(struct loan *loan, bool map);
/* The block gets back its pages (`move`) or copies of them; `freed`: it needs neither. The loan stays, not tied. */
void loan_untie(struct loan *loan, bool move, bool freed);
/* Copies what the program changed in the block since into the loan's pages. */
void loan_refresh(struct loan *loan);
/* The context or the buffer is about to end: the block gets its pages back, the loan ends. No driver call: what was
 * registered is unregistered by whoever frees the window. */
void loan_abandon(struct loan *loan);

static inline uintptr_t loan_host_end(const struct loan *loan) { return loan->host + loan->units * LOAN_UNIT; }
#endif
