#include "shim/report_timeline.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include "shim/arena.h"
#include "shim/buffer.h"
#include "shim/clock.h"
#include "shim/lock.h"
#include "shim/shim.h"

enum { FIRST_PAUSE_NS = 1000000 };

static struct {
    struct lock lock;        /* taken before the table of buffers' lock; the code of that table comes here without it */
    _Atomic uint64_t due_ns; /* 0: at once, as at the start and when a dump was asked for */
    _Atomic bool dump;       /* a signal asked for a report */
    bool watching;           /* the signal's handler was looked after */
    uint64_t start_ns, pause_ns;
    struct report_sample *samples;
    struct report_move *moves;
    size_t sample_count, move_count;
} timeline = {.lock = LOCK_INITIALIZER, .pause_ns = FIRST_PAUSE_NS};

__attribute__((constructor(102))) static void timeline_begin(void) { timeline.start_ns = clock_ns(); }

uint64_t timeline_start_ns(void) { return timeline.start_ns; }

static void sample_take(struct report_sample *sample, uint64_t now_ns)
{
    struct usage totals[BUFFER_KINDS];
    buffer_totals(totals);
    sample->time_ns = now_ns - timeline.start_ns;
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) sample->live_bytes[kind] = totals[kind].live_bytes;
    sample->copies_elided = STAT_GET(copies_h2d_elided) + STAT_GET(copies_d2h_elided) + STAT_GET(copies_by_kernel);
    sample->copies_native = STAT_GET(copies_native);
    sample->bytes_native = STAT_GET(bytes_native);
}

/* Called with the lock held. */
static void sample_add(uint64_t now_ns)
{
    if (!timeline.samples && !(timeline.samples = arena_alloc(TIMELINE_SAMPLES * sizeof *timeline.samples))) return;
    if (timeline.sample_count == TIMELINE_SAMPLES) {
        for (size_t i = 0; i < TIMELINE_SAMPLES / 2; i++) timeline.samples[i] = timeline.samples[i * 2];
        timeline.sample_count = TIMELINE_SAMPLES / 2;
        timeline.pause_ns *= 2;
    }
    sample_take(&timeline.samples[timeline.sample_count++], now_ns);
    atomic_store_explicit(&timeline.due_ns, now_ns + timeline.pause_ns, memory_order_relaxed);
}

static void dump_asked(int signal)
{
    (void)signal;
    atomic_store_explicit(&timeline.dump, true, memory_order_relaxed);
    atomic_store_explicit(&timeline.due_ns, 0, memory_order_release);
}

/* A signal that the program uses itself is left to it. */
static void dump_watch(void)
{
    struct sigaction before, ours = {.sa_handler = dump_asked, .sa_flags = SA_RESTART};
    int signal = shim.options.dump == DUMP_USR1 ? SIGUSR1 : SIGUSR2;
    timeline.watching = true;
    if (shim.options.dump == DUMP_OFF || sigaction(signal, NULL, &before) != 0) return;
    if (before.sa_handler == SIG_DFL)
        sigaction(signal, &ours, NULL);
    else
        report_note("ZCSHIM_DUMP: the program uses that signal itself");
}

void report_tick(uint64_t now_ns)
{
    if (now_ns < atomic_load_explicit(&timeline.due_ns, memory_order_acquire)) return;
    if (pthread_mutex_trylock(&timeline.lock.mutex) != 0) return; /* somebody takes this sample already */
    if (!timeline.watching) dump_watch();
    if (now_ns >= atomic_load_explicit(&timeline.due_ns, memory_order_relaxed)) sample_add(now_ns);
    bool dump = atomic_exchange_explicit(&timeline.dump, false, memory_order_relaxed);
    lock_release(&timeline.lock);
    if (dump) report_dump();
}

void report_moved(struct site *site, bool to_host, size_t bytes, uint64_t now_ns, uint64_t took_ns)
{
    lock_acquire(&timeline.lock);
    if (!timeline.moves) timeline.moves = arena_alloc(TIMELINE_MOVES * sizeof *timeline.moves);
    if (timeline.moves && timeline.move_count < TIMELINE_MOVES)
        timeline.moves[timeline.move_count++] =
            (struct report_move){now_ns - timeline.start_ns, took_ns, bytes, site ? site->id : 0, to_host};
    lock_release(&timeline.lock);
}

size_t timeline_samples(struct report_sample **samples, uint64_t now_ns)
{
    lock_acquire(&timeline.lock);
    sample_add(now_ns);
    *samples = timeline.samples;
    size_t count = timeline.sample_count;
    lock_release(&timeline.lock);
    return count;
}

size_t timeline_moves(struct report_move **moves)
{
    *moves = timeline.moves;
    return timeline.move_count;
}
