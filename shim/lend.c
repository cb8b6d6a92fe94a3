/* Who is lent what, and when a loan must end. */
#include "shim/lend.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "policy/lend.h"
#include "shim/clock.h"
#include "shim/context.h"
#include "shim/hostmem.h"
#include "shim/kernel.h"
#include "shim/kernels.h"
#include "shim/lend_loan.h"
#include "shim/lend_watch.h"
#include "shim/report.h"
#include "shim/shim.h"

/* A site whose buffers were a bad choice so often has had its chances. */
#define REFUSALS_MOST 2
/* Of launch_names: nothing else is there. */
#define BEFORE WINDOW_UNIT

/* One at a time makes or ends loans. Signals are held off meanwhile: a handler that touches a lent block, or waits for
 * a thread that does, would wait for its own thread. */
static struct {
    pthread_mutex_t mutex;
    sigset_t signals;
} turn = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static __thread bool my_turn;

static void turn_take(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&turn.mutex);
    turn.signals = before;
    my_turn = true;
}

static void turn_give(void)
{
    sigset_t before = turn.signals;
    my_turn = false;
    pthread_mutex_unlock(&turn.mutex);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ns that tries may have lost so far, those included that have not paid yet; the turn guards it. */
static double lost_ns;
static uint64_t begun_ns;

static void refuse(struct window *window, const char *reason, unsigned times)
{
    struct site *site = window->site;
    if (!site || shim.options.stress_moves) return; /* tests go on lending */
    unsigned before = atomic_load(&site->lend_refused);
    atomic_store(&site->lend_refused, before + times > UINT8_MAX ? UINT8_MAX : (uint8_t)(before + times));
    atomic_store_explicit(&site->reason, reason, memory_order_relaxed);
}

/* A loan comes to its end, and may not have been worth it. */
static void judge(struct loan *loan, const char *end)
{
    if (loan->judged) return;
    loan->judged = true;
    refuse(loan->window, end, 1);
}

/* --- the quiet GPU --- */

/* The gate closed and no work anywhere; asked for at most patience_ns. The caller opens the gate. */
static bool quiet_begin(uint64_t patience_ns)
{
    uint64_t until = patience_ns ? clock_ns() + patience_ns : 0;
    for (;;) {
        if (gate_try_close()) {
            if (contexts_quiet()) return true;
            gate_open();
        }
        if (!patience_ns || clock_ns() >= until) return false;
        sched_yield();
    }
}

/* As long as giving the block a copy would take. */
static uint64_t patience(const struct loan *loan) { return loan->tied ? loan->total / 8 : 0; }

/* Ends the loan, or at least the sharing: see lend_end_all. */
static void settle(struct loan *loan, bool patient)
{
    judge(loan, "lent in vain: written, or used in another way");
    if (loan->state == LOAN_HELD) {
        loan_carry(loan);
        STAT_ADD(lend_carried, 1);
        return;
    }
    bool ended = false;
    if (!loan->window->frozen && quiet_begin(patient ? patience(loan) : 0)) {
        ended = loan_return(loan);
        gate_open();
    }
    if (ended) {
        STAT_ADD(lend_returned, 1);
    } else if (loan->tied) {
        loan_untie(loan, false, false);
        STAT_ADD(lend_untied, 1);
    }
}

/* The first loan behind `loan` (NULL: of all), or NULL. */
static struct loan *loan_next(struct loan *loan)
{
    for (loan = loan ? loan + 1 : loans.entries; loan < loans.entries + LOANS_MOST; loan++)
        if (loan->state > LOAN_COMING && loan->window) return loan;
    return NULL;
}

void lend_end_all(void)
{
    if (!lend_any() || my_turn) return;
    turn_take();
    for (struct loan *loan = loan_next(NULL); loan; loan = loan_next(loan)) settle(loan, true);
    turn_give();
}

void lend_named(CUdeviceptr address)
{
    if (!lend_any() || my_turn || !context_hull_has(address)) return;
    struct window *window = window_at(address);
    if (!window || !window->loan) return;
    turn_take();
    struct loan *loan = window->loan;
    if (loan) settle(loan, true);
    turn_give();
}

bool lend_unsettled(CUdeviceptr address)
{
    struct window *window = context_hull_has(address) ? window_at(address) : NULL;
    struct loan *loan = window ? window->loan : NULL;
    return loan && (loan->tied || loan->state == LOAN_HELD);
}

void lend_freed(struct window *window)
{
    if (!window->loan) return;
    turn_take();
    struct loan *loan = window->loan;
    if (loan) judge(loan, "lent in vain: freed");
    /* Work that was submitted since may wait for somebody who waits for the turn: then no driver call is made. */
    bool quiet = loan && quiet_begin(0), dropped = quiet && loan_drop(loan, false);
    if (quiet) gate_open();
    if (loan && !dropped) loan_abandon(loan);
    turn_give();
}

void lend_context_ends(CUcontext context)
{
    if (!lend_any()) return;
    turn_take();
    for (struct loan *loan = loan_next(NULL); loan; loan = loan_next(loan))
        if (loan->window->context->handle == context) loan_abandon(loan);
    turn_give();
}

/* A block that is lent is named by somebody: called by hostmem. */
static void recall_block(uintptr_t address, size_t bytes, bool freed)
{
    if (my_turn) return;
    turn_take();
    for (struct loan *loan = loan_next(NULL); loan; loan = loan_next(loan)) {
        if (!loan->tied || loan->host < address || loan->host - address >= bytes) continue;
        if (freed) {
            judge(loan, "lent in vain: the block was freed");
            loan_untie(loan, false, true); /* the pages stay where they are read */
        } else {
            settle(loan, true);
        }
    }
    turn_give();
}

/* --- who may be lent to --- */

static int attribute(CUdevice device, CUdevice_attribute which)
{
    int value = 0;
    return shim.real.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 1;
}

static bool enabled(void)
{
    return shim.options.lend == LEND_AUTO && shim.options.mode == MODE_AUTO && shim.options.host;
}

/* A device that can read pageable memory by itself would meet the watched addresses. */
static bool context_lends(const struct context *context)
{
    return context->support == CONTEXT_MOVES && !context->lost && !context->integrated && !context->peer_count &&
           !contexts_several() && !attribute(context->device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
}

/* Libraries that hand device buffers to other processes or devices, which a window cannot be. */
static int is_sharer(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    static const char *const names[] = {"/libmpi",     "/libucp",     "/libucs",    "/libnccl",
                                        "/libnvshmem", "/libibverbs", "/libfabric", "/libcufile"};
    (void)bytes, (void)unused;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(info->dlpi_name, names[i])) return 1;
    return 0;
}

bool lend_wanted(struct context *context, struct site *site, size_t bytes)
{
    if (!enabled() || bytes < shim.options.lend_min || !site || site->lend_refused >= REFUSALS_MOST ||
        site->native_only || context_capturing() || !watch_possible() || dl_iterate_phdr(is_sharer, NULL) ||
        !kernels_any_bounded())
        return false;
    if (!context_ready(context) || !context_lends(context)) return false;
    turn_take();
    bool works = loan_probe();
    if (!begun_ns) begun_ns = clock_ns();
    turn_give();
    if (!works) report_note("lending: watching memory does not work here (userfaultfd); large buffers are copied");
    hostmem_lend_recall(recall_block);
    return works;
}

/* Pages that somebody else has pinned, RDMA for one, may be written without a touch that could be seen. */
static bool nothing_is_pinned(void)
{
    char text[4096];
    int error = errno, descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t got = descriptor < 0 ? -1 : read(descriptor, text, sizeof text - 1);
    if (descriptor >= 0) close(descriptor);
    errno = error;
    if (got <= 0) return false;
    text[got] = 0;
    const char *line = strstr(text, "VmPin:");
    return line && strtoull(line + 6, NULL, 10) == 0;
}

/* The same block again: what the program changed is copied into the lent pages. */
static bool upload_again(struct loan *loan, uintptr_t host)
{
    if (!loan->tied || loan->host != host) return false;
    if (!lend_refreshes(loan->touched_count, loan->units) && !shim.options.stress_moves) return false;
    uint64_t began = clock_ns();
    loan_refresh(loan);
    hostmem_saved(loan->total, clock_ns() - began);
    if (lend_has_paid(++loan->again) && !loan->judged) {
        loan->judged = true;
        lost_ns -= lend_worst_ns(loan->total);
    }
    loan->spent_ns = 0;
    STAT_ADD(lend_unchanged, 1);
    return true;
}

/* Is this upload one of a row of the same, and may a loan be tried? */
static bool is_tried(struct window *window, uintptr_t host)
{
    if (window->site && window->site->lend_refused >= REFUSALS_MOST) return false;
    if (shim.options.stress_moves) return true;
    uint64_t serial = hostmem_serial(host); /* a new block at the old address is another one */
    bool again = window->lend_host == host && window->lend_serial == serial;
    window->lend_repeats = again ? window->lend_repeats + 1 : 0;
    window->lend_host = host;
    window->lend_serial = serial;
    double allowed = shim.options.regret * (double)(clock_ns() - begun_ns);
    return lend_is_tried(window->sole_bytes, window->lend_repeats, (double)STAT_GET(host_saved_ns) + allowed - lost_ns);
}

static bool upload_first(struct window *window, uintptr_t host)
{
    if (hostmem_available() < window->sole_bytes || !nothing_is_pinned() || !quiet_begin(0)) return false;
    struct loan *loan = window->loan;
    bool made = false, pushed;
    /* What was lent before is overwritten as a whole. */
    if (context_enter(window->context, &pushed)) {
        if (loan) judge(loan, "lent in vain: the program goes on using the block");
        if (!loan || loan_drop(loan, true)) {
            kernel_load(window->context); /* copies behind busy streams will need it */
            made = window->context->copy_kernel && loan_make(window, host);
            if (made)
                lost_ns += lend_worst_ns(window->sole_bytes);
            else
                refuse(window, "not lent: its block is in use, or lies in several mappings", 1);
        }
        context_leave(pushed);
    }
    gate_open();
    return made;
}

bool lend_upload(const struct copy_request *r)
{
    struct window *window = r->window;
    uintptr_t host = (uintptr_t)r->host;
    if (r->direction != COPY_H2D || r->device != window->base || r->width != window->sole_bytes || r->height != 1 ||
        r->depth != 1 || r->width < shim.options.lend_min || host % LOAN_UNIT || !hostmem_owns(r->host))
        return false;
    struct context *context = context_current();
    if (context != window->context || window->frozen || context_capturing() || !context_lends(context) ||
        !context_owns_stream(context, r->stream) || my_turn)
        return false;
    turn_take();
    bool done =
        (window->loan && upload_again(window->loan, host)) || (is_tried(window, host) && upload_first(window, host));
    turn_give();
    return done;
}

/* --- launches --- */

/* What a piece of work does to a loan's buffer. */
enum effect { EFFECT_NONE, EFFECT_READS, EFFECT_MAY_READ /* without naming it */, EFFECT_MAY_WRITE };

/* `*read_ns`: the most that reading the buffer may take. */
static enum effect effect_of(const struct lend_work *work, const struct ptx_kernel *facts, const struct loan *loan,
                             double *read_ns)
{
    *read_ns = 0;
    if (work->waits) return EFFECT_NONE;
    if (!facts || !ptx_kernel_confined(facts)) return EFFECT_MAY_WRITE;
    enum effect effect = facts->loads_elsewhere ? EFFECT_MAY_READ : EFFECT_NONE;
    if (effect != EFFECT_NONE) *read_ns = LEND_UNBOUNDED;
    for (uint32_t i = 0; i < facts->pointer_count; i++) {
        const struct ptx_pointer *pointer = &facts->pointers[i];
        uintptr_t value;
        if (!launch_pointer(work->launch, facts, pointer, &value)) return EFFECT_MAY_WRITE;
        if (!launch_names(value, loan->window->base, loan->total, BEFORE)) continue;
        if (pointer->use != PTX_READS) return EFFECT_MAY_WRITE;
        if (effect == EFFECT_NONE) effect = EFFECT_READS;
        *read_ns += lend_read_ns(pointer->accesses_per_thread, work->launch->threads);
    }
    return effect;
}

static const struct ptx_kernel *facts_of(const struct lend_work *work)
{
    return work->launch ? kernels_facts(work->launch->function) : NULL;
}

/* Is the loan in a state that the work may find? In the gate. */
static bool loan_admits(const struct loan *loan, const struct lend_work *work, const struct ptx_kernel *facts)
{
    double read_ns;
    if (loan->state == LOAN_HELD) return false;
    enum effect effect = effect_of(work, facts, loan, &read_ns);
    if (effect == EFFECT_NONE) return true;
    if (effect == EFFECT_MAY_WRITE && loan->tied) return false;
    /* What is read is counted once, by lend_prepare. */
    return work->asked;
}

bool lend_admits(const struct lend_work *work)
{
    const struct ptx_kernel *facts = facts_of(work);
    for (struct loan *loan = loan_next(NULL); loan; loan = loan_next(loan))
        if (!loan_admits(loan, work, facts)) return false;
    return true;
}

static void prepare_held(struct loan *loan, enum effect effect, double read_ns)
{
    struct window *window = loan->window;
    bool pays = effect == EFFECT_READS && lend_pays(loan->total, read_ns);
    if (pays && !window->frozen && loan_lend(loan)) {
        loan->spent_ns = read_ns;
        STAT_ADD(lend_uploads, 1);
        STAT_ADD(lend_bytes, loan->total);
        if (window->site)
            atomic_store_explicit(&window->site->reason, "lent: kernels read little of it", memory_order_relaxed);
        return;
    }
    /* A kernel that reads much of it is a reason for good; work that has nothing to do with it says little. */
    if (effect == EFFECT_READS) refuse(window, "not lent: a kernel may read much of it", REFUSALS_MOST);
    settle(loan, false);
}

static void prepare_lent(struct loan *loan, enum effect effect, double read_ns)
{
    struct window *window = loan->window;
    if (effect == EFFECT_NONE) return;
    if (effect == EFFECT_READS) {
        loan->spent_ns += read_ns;
        if (!lend_has_cost_too_much(loan->total, loan->spent_ns)) return;
    }
    if (effect == EFFECT_MAY_WRITE) {
        settle(loan, true);
        return;
    }
    judge(loan, "lent in vain: kernels read too much of it");
    /* It need not end: if the GPU is busy the kernel reads it over the bus. */
    if (window->frozen || !quiet_begin(patience(loan))) return;
    if (loan_return(loan)) STAT_ADD(lend_returned, 1);
    gate_open();
}

void lend_prepare(struct lend_work *work)
{
    const struct ptx_kernel *facts = facts_of(work);
    turn_take();
    for (struct loan *loan = loan_next(NULL); loan; loan = loan_next(loan)) {
        double read_ns;
        enum effect effect = effect_of(work, facts, loan, &read_ns);
        if (loan->state == LOAN_HELD)
            prepare_held(loan, effect, read_ns);
        else if (!work->asked || (effect == EFFECT_MAY_WRITE && loan->tied))
            prepare_lent(loan, effect, read_ns);
    }
    turn_give();
    work->asked = true;
}

/* --- fork --- */

void lend_before_fork(void)
{
    turn_take();
    for (struct loan *loan = loan_next(NULL); loan; loan = loan_next(loan)) {
        if (loan->state == LOAN_LENT)
            settle(loan, false);
        else
            loan_untie(loan, false, false);
    }
    lock_acquire(&loans.lock);
}

void lend_after_fork_parent(void)
{
    lock_release(&loans.lock);
    turn_give();
}

void lend_after_fork_child(void)
{
    loans.lock = (struct lock)LOCK_INITIALIZER;
    for (int i = 0; i < LOANS_MOST; i++) loans.entries[i].state = LOAN_NONE;
    atomic_store(&lend_loans, 0);
    watch_after_fork_child();
    pthread_sigmask(SIG_SETMASK, &turn.signals, NULL);
    turn.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    my_turn = false;
}
