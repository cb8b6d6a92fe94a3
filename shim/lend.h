/* Lending: the pages of a large host block become the backing of the device buffer that they were uploaded to, without
 * a copy, while only kernels that provably read, and provably little, use that buffer. docs/design.md, "Lending".
 *
 * A loan is a pair of a block and a window (window.h, `lendable`). There are few. Who makes or ends one holds the turn
 * (one lock, outermost, never asked for inside the submission gate); nobody waits for the GPU's own work while holding
 * it for longer than a bounded time. Every hook that names or may touch a lent buffer or block calls one of the
 * functions below first; with no loan alive that is one comparison. All of them may be called by any thread, outside
 * the gate unless they say otherwise. */
#ifndef SHIM_LEND_H
#define SHIM_LEND_H
#include "shim/copy.h"
#include "shim/gate.h"
#include "shim/launch.h"
#include "shim/window.h"

/* Loans alive. Grows only while the gate is closed: who has entered the gate and sees none is sure of it. */
extern _Atomic int lend_loans;
static inline bool lend_any(void)
{
    return __builtin_expect(atomic_load_explicit(&lend_loans, memory_order_acquire) != 0, 0);
}

/* Should a buffer of this size have a window for lending? `context` is current. May make driver calls. */
bool lend_wanted(struct context *context, struct site *site, size_t bytes);

/* An upload of a whole lendable window, which has waited as the native call waits. True: done, its pages are on loan
 * (or were and are as the upload asks); false: copy. */
bool lend_upload(const struct copy_request *request);

/* Before anything but a launch that names this device address: a loan of its window ends. */
void lend_named(CUdeviceptr address);
/* Inside the gate: must lend_named be called first? The answer no is good until the gate is left. */
bool lend_unsettled(CUdeviceptr address);
/* Enters the gate with no loan of the windows at these addresses that could be in the way. */
static inline void lend_gate_enter_named(CUdeviceptr a, CUdeviceptr b)
{
    gate_enter();
    while (lend_any() && (lend_unsettled(a) || lend_unsettled(b))) {
        gate_leave();
        lend_named(a);
        lend_named(b);
        gate_enter();
    }
}

/* Before work that may touch any buffer, a capture, a fork of the context's use: all loans end. Those that cannot
 * (the GPU is busy) no longer share pages with a block and may be written. */
void lend_end_all(void);
/* A lendable window's buffer is freed; the GPU was waited for. */
void lend_freed(struct window *window);
/* Before the driver destroys or resets the context. */
void lend_context_ends(CUcontext context);

/* What is about to be given to the GPU. */
struct lend_work {
    const struct launch *launch; /* NULL: not a kernel */
    bool waits;                  /* touches no memory, but the GPU may come to wait for the program */
    bool asked;                  /* inner: loans that must not but should end were looked after */
};
/* Enters the gate with every loan in a state that the work may find. Inline: one comparison without loans. */
bool lend_admits(const struct lend_work *work);
void lend_prepare(struct lend_work *work);
static inline void lend_gate_enter(struct lend_work *work)
{
    gate_enter();
    while (lend_any() && !lend_admits(work)) {
        gate_leave();
        lend_prepare(work);
        gate_enter();
    }
}

/* Around fork, before and after all other rooms. */
void lend_before_fork(void);
void lend_after_fork_parent(void);
void lend_after_fork_child(void);
#endif
