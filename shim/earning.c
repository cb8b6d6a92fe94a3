#include "shim/arena.h"
#include "shim/choice.h"
#include "shim/clock.h"
#include "shim/context.h"
#include "shim/cost_file.h"
#include "shim/earning.h"
#include "shim/gate.h"
#include "shim/kernels.h"
#include "shim/placement.h"
#include "shim/reach.h"
#include "shim/shim.h"
#include "shim/trace.h"

/* window->policy */
struct earning {
    struct lock lock;
    struct earn_window earn;
};

static struct {
    _Atomic int started;
    struct cost cost;
    struct earn_run run;
} earning;

void earning_start(void)
{
    int no = 0;
    if (!atomic_compare_exchange_strong(&earning.started, &no, 1)) return;
    cost_default(&earning.cost);
    cost_file_read(&earning.cost);
    earn_run_begin(&earning.run, &earning.cost, shim.options.regret, clock_ns());
    choice_start(&earning.run);
    atomic_store_explicit(&earning.started, 2, memory_order_release);
}

static bool at_work(void) { return atomic_load_explicit(&earning.started, memory_order_acquire) == 2; }

const struct cost *earning_cost(void) { return at_work() ? &earning.cost : NULL; }

bool earning_initial(struct site *site, size_t bytes, enum window_place *place)
{
    struct window *last = site ? site->windows : NULL;
    struct earning *state = last ? last->policy : NULL;
    struct earn_past past;
    const char *reason = NULL;
    bool known;
    enum choice choice = choice_for(site, bytes, &past, &known, &reason);
    if (site && choice != CHOICE_OPEN) atomic_store_explicit(&site->reason, reason, memory_order_relaxed);
    if (choice == CHOICE_DRIVER) return false;
    bool on_host = choice == CHOICE_HOST || (state ? state->earn.place == EARN_HOST && state->earn.state == EARN_SETTLED
                                                   : known && past.place == EARN_HOST);
    *place = on_host ? WINDOW_HOST : WINDOW_DEVICE;
    return true;
}

/* What is known of the site before this window: its last window, else the profile. */
static bool past_for(struct window *window, struct earn_past *past, enum choice *choice, const char **reason)
{
    struct window *last = window->site ? window->site->windows : NULL;
    bool known;
    *choice = choice_for(window->site, window->live_bytes, past, &known, reason);
    if (last && last != window && last->policy) {
        *past = earn_past_of(&((struct earning *)last->policy)->earn);
        known = true;
    }
    if (window->sole_bytes && choice_sparse(window->site, past)) known = true;
    past->place = window->place == WINDOW_HOST ? EARN_HOST : EARN_DEVICE;
    return known || window->place == WINDOW_HOST;
}

void earning_window(struct window *window)
{
    struct earning *state = window->policy;
    struct earn_past past = {.place = EARN_DEVICE};
    enum choice choice;
    const char *reason = NULL;
    if (!at_work()) return;
    bool known = past_for(window, &past, &choice, &reason);
    bool fresh = !state;
    if (fresh && !(state = arena_calloc(sizeof *state))) return;
    if (fresh) state->lock = (struct lock)LOCK_INITIALIZER;
    lock_acquire(&state->lock);
    if (!fresh) earn_end(&state->earn, &earning.run);
    earn_begin(&state->earn, &earning.run, window->live_bytes, known ? &past : NULL, clock_ns());
    if (choice == CHOICE_HOST) earn_fix(&state->earn, &earning.run, reason);
    lock_release(&state->lock);
    window->policy = state;
}

void earning_window_gone(struct window *window)
{
    struct earning *state = window->policy;
    if (!state) return;
    lock_acquire(&state->lock);
    earn_end(&state->earn, &earning.run);
    lock_release(&state->lock);
}

bool earning_past(struct site *site, struct earn_past *past, bool *decided)
{
    struct earning *state = site->windows ? site->windows->policy : NULL;
    if (!state) return false;
    *past = earn_past_of(&state->earn);
    *decided = state->earn.trials > 0 || state->earn.place == EARN_HOST;
    return true;
}

void earning_bytes(struct window *window)
{
    struct earning *state = window->policy;
    if (!state) return;
    lock_acquire(&state->lock);
    earn_bytes(&state->earn, window->live_bytes);
    lock_release(&state->lock);
}

void earning_moved(struct window *window, enum window_place place)
{
    struct earning *state = window->policy;
    if (!state) return;
    lock_acquire(&state->lock);
    earn_moved(&state->earn, &earning.run, place == WINDOW_HOST ? EARN_HOST : EARN_DEVICE, EARN_MOVED, 0, clock_ns());
    lock_release(&state->lock);
}

void earning_frozen(struct window *window, const char *reason)
{
    struct earning *state = window->policy;
    if (!state) return;
    lock_acquire(&state->lock);
    earn_fix(&state->earn, &earning.run, reason);
    lock_release(&state->lock);
}

/* Makes the move that was asked for and tells what came of it. The state's lock is not held meanwhile. */
static void obey(struct window *window, struct earning *state, enum earn_decision decision)
{
    if (decision == EARN_STAY) return;
    enum window_place place = decision == EARN_TRY_HOST ? WINDOW_HOST : WINDOW_DEVICE;
    uint64_t started = clock_ns();
    bool first = !atomic_load_explicit(&earning.run.first_made, memory_order_relaxed);
    enum placement_answer moved = placement_move(window, place, state->earn.reason);
    uint64_t now = clock_ns();
    if (moved == PLACEMENT_MOVED && !first)
        cost_observe(&earning.cost, place == WINDOW_HOST ? COST_MOVE_TO_HOST : COST_MOVE_TO_DEVICE, window->live_bytes,
                     (double)(now - started));
    enum earn_answer answer = moved == PLACEMENT_MOVED    ? EARN_MOVED
                              : moved == PLACEMENT_FAILED ? EARN_FAILED
                                                          : EARN_BUSY;
    lock_acquire(&state->lock);
    earn_moved(&state->earn, &earning.run, place == WINDOW_HOST ? EARN_HOST : EARN_DEVICE, answer,
               (double)(now - started), now);
    lock_release(&state->lock);
    if (window->site) atomic_store_explicit(&window->site->reason, state->earn.reason, memory_order_relaxed);
}

void earning_copied(struct window *window, const struct copy_request *request)
{
    struct earning *state = window->policy;
    if (!state || !lock_try(&state->lock)) return;
    struct earn_copy copy = {.now_ns = clock_ns(),
                             .offset = request->device - window->base,
                             .bytes = request->width * request->height * request->depth,
                             .direction = request->direction == COPY_H2D ? COST_H2D : COST_D2H,
                             .waited = copy_waits(request),
                             .submissions = gate_work()};
    enum earn_decision decision = earn_copy(&state->earn, &earning.run, &copy);
    lock_release(&state->lock);
    if (__builtin_expect(*shim.options.trace_copies != 0, 0)) trace_copy(window, &copy);
    if (__builtin_expect(decision != EARN_STAY, 0)) obey(window, state, decision);
}

/* What every window is asked that a kernel of the current context may touch. */
struct question {
    struct context *current;
    bool on_device_too; /* else those on the host */
    enum earn_decision (*ask)(struct window *, struct earn_window *, const void *);
    const void *argument;
    bool all;    /* none was in use and left out */
    bool obeyed; /* none stays on the host that was to go and can */
};

static void ask_window(struct window *window, struct question *question)
{
    struct earning *state = window->policy;
    if (!state || !(window->place == WINDOW_HOST || (question->on_device_too && window->place == WINDOW_DEVICE)))
        return;
    if (!lock_try(&state->lock)) {
        question->all = false;
        return;
    }
    enum earn_decision decision = question->ask(window, &state->earn, question->argument);
    lock_release(&state->lock);
    obey(window, state, decision);
    question->obeyed &= decision != EARN_TO_DEVICE || window->place != WINDOW_HOST || window->frozen;
}

static void ask_context(struct context *context, void *argument)
{
    struct question *question = argument;
    if (context != question->current && !context_read_by(context, question->current)) return;
    for (struct window *window = context->windows; window; window = window->next) ask_window(window, question);
}

static struct question ask_all(bool on_device_too,
                               enum earn_decision (*ask)(struct window *, struct earn_window *, const void *),
                               const void *argument)
{
    struct question question = {context_current(), on_device_too, ask, argument, true, true};
    if (question.current) context_for_each(ask_context, &question);
    return question;
}

struct told {
    const struct launch *launch;
    struct reach reach;
    uint64_t kernel, now_ns;
};

static enum earn_decision ask_kernel(struct window *window, struct earn_window *earn, const void *argument)
{
    const struct told *told = argument;
    double loss_ns;
    enum cost_class class = reach_class(&told->reach, told->launch, window->base, window->bytes, &loss_ns);
    return earn_kernel(earn, &earning.run, told->kernel, class, loss_ns, told->now_ns);
}

static enum earn_decision ask_tick(struct window *window, struct earn_window *earn, const void *argument)
{
    (void)window;
    return earn_tick(earn, &earning.run, *(const uint64_t *)argument);
}

/* A rule keeps everything on the device while this kernel runs; since the next launch of it may come at any time, for
 * good. */
static enum earn_decision ask_by_rule(struct window *window, struct earn_window *earn, const void *argument)
{
    (void)window;
    (void)argument;
    earn_fix(earn, &earning.run, "a rule names a kernel");
    return EARN_TO_DEVICE;
}

/* Launches between two looks at the clock. */
#define LAUNCHES_A_TICK 16
static __thread unsigned launches;

void earning_launch(const struct launch *launch)
{
    if (!at_work()) return;
    bool learning = atomic_load_explicit(&earning.run.learning, memory_order_relaxed);
    struct told told = {
        .launch = launch,
        .reach = {.facts = learning ? kernels_facts(launch->function) : NULL, .by_arguments = learning}};
    uint64_t named = reach_hash(&told.reach, launch, context_hull.low, context_hull.high, WINDOW_UNIT);
    uint64_t ended = atomic_load_explicit(kernels_ended_of(launch->function), memory_order_relaxed);
    told.kernel = earn_kernel_id(launch->function, launch->threads, named ^ ended * 0x9e3779b97f4a7c15ull);
    if (__builtin_expect(earn_launch(&earning.run, told.kernel), 0)) {
        told.now_ns = clock_ns();
        /* A settled window that need not fear this kernel can stay. */
        if (!learning && atomic_load_explicit(&earning.run.settled, memory_order_relaxed))
            told.reach.facts = kernels_facts(launch->function);
        struct question rule = {.all = true, .obeyed = true};
        if (choice_kernel_on_device(kernels_name(launch->function))) rule = ask_all(false, ask_by_rule, NULL);
        /* If one could not be asked, or stays against the rule, the next launch of it asks again. */
        if (ask_all(true, ask_kernel, &told).all && rule.all && rule.obeyed)
            earn_announce(&earning.run, told.kernel, told.now_ns);
    }
    if (++launches % LAUNCHES_A_TICK == 0) {
        uint64_t now = clock_ns();
        if (earn_tick_due(&earning.run, now)) ask_all(false, ask_tick, &now);
    }
}

static void add_window(const struct window *window)
{
    struct earning *state = window->policy;
    if (!state || !window->site) return;
    double balance = state->earn.place == EARN_HOST ? state->earn.balance_ns : 0; /* of a stay that goes on */
    double gained = state->earn.gained_ns + (balance > 0 ? balance : 0);
    double lost = state->earn.lost_ns + (balance < 0 ? -balance : 0);
    atomic_fetch_add(&window->site->saved_ns, (uint64_t)gained);
    atomic_fetch_add(&window->site->lost_ns, (uint64_t)lost);
    atomic_store(&window->site->on_host, window->place == WINDOW_HOST);
    if (!window->site->reason || state->earn.copies) atomic_store(&window->site->reason, state->earn.reason);
    STAT_ADD(elided_saved_ns, (uint64_t)gained);
}

static void add_context(struct context *context, void *unused)
{
    (void)unused;
    for (struct window *window = context->windows; window; window = window->next) add_window(window);
}

void earning_at_exit(void) { context_for_each(add_context, NULL); }
