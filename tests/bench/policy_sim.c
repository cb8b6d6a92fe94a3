/* make policy-sim: what policy `auto` would have cost, against always, never and the best in hindsight.
 *
 *     policy_sim [--check] [--worlds N] [--seed S] [--regret PERCENT] [--slower F] [--record FILE] [TRACE...]
 *
 * Without traces: named loops (the suites of the benchmark in small) and N random worlds. With traces: each is
 * replayed. --record writes the copies of the first named loop as a trace. --check fails if a claim does not hold.
 *
 * Trace format (ZCSHIM_TRACE_COPIES writes it): one copy a line, ascending times, lines that start with # are comments:
 *     time_ns window direction bytes waited place
 * time_ns at the copy's end; window any number; direction h2d or d2h; waited 1 if the copy waits for the GPU as its
 * native form does; place host or device: where the window was. A trace does not say how kernels would run elsewhere:
 * on the host they are taken to take F times as long (--slower, default 1), and the time between copies that is not a
 * copy's own is taken to be kernels'. */
#include <stdlib.h>
#include <string.h>

#include "policy_world.h"

struct settings {
    bool check;
    uint64_t worlds, seed;
    double regret, slower;
    const char *record;
};

static struct cost cost;
static unsigned failures;

static void expect(bool holds, const char *name, const char *what)
{
    if (holds) return;
    failures++;
    printf("FAIL %s: %s\n", name, what);
}

/* ---- named loops ---- */

struct loop {
    const char *name;
    double kernel_ns, factor; /* factor: kernel time on the host / on the device */
    enum cost_class kernels;
    unsigned h2d, d2h;
    uint64_t copy_bytes, window_bytes;
    double total_ns;  /* natively, about */
    double of_always; /* bars; 0: none */
    double of_never;
    double lost_ns;
};

static const struct loop loops[] = {
    {"round trip 4 B", 5e3, 1, COST_PLAIN, 1, 1, 4, 4096, 2e9, 1.05, 0.8, 0},
    {"round trip 4 B, kernel unknown", 5e3, 1, COST_UNKNOWN, 1, 1, 4, 4096, 5e9, 0, 0.8, 0},
    {"round trip 16 KiB", 5e3, 1.2, COST_PLAIN, 1, 1, 16384, 16384, 2e9, 1.05, 0.8, 0},
    {"levels of a search", 10e3, 1, COST_PLAIN, 1, 1, 4, 4096, 2e9, 1.05, 0.8, 0},
    {"solver's scalars", 30e3, 1.05, COST_PLAIN, 0, 3, 8, 4096, 2e9, 1.05, 0.9, 0},
    {"4 KiB table hammered", 15e3, 2.3, COST_PLAIN, 1, 1, 4096, 4096, 2e9, 0, 1.02, 0},
    {"64 KiB table hammered", 22e3, 17, COST_PLAIN, 1, 1, 65536, 65536, 2e9, 0, 1.02, 0},
    {"64 KiB table hammered, 50 ms", 22e3, 17, COST_PLAIN, 1, 1, 65536, 65536, 5e7, 0, 0, 5e6},
    {"histogram by atomics", 38e3, 370, COST_ATOMICS, 1, 1, 1024, 4096, 2e9, 0, 1.02, 0},
    {"histogram, kernel unknown, 50 ms", 38e3, 370, COST_UNKNOWN, 1, 1, 1024, 4096, 5e7, 0, 0, 5e6},
    {"long loop that gains little", 5e5, 1, COST_PLAIN, 1, 1, 4, 4096, 2e9, 0, 1.01, 0},
};

static struct world world_of(const struct loop *loop)
{
    struct world world = {.seed = 5, .windows = 1, .phases = 1, .announces = true, .move_noise = 0.2};
    struct world_phase *phase = &world.phase[0];
    world.window[0] = (struct world_window){loop->window_bytes, loop->copy_bytes};
    *phase = (struct world_phase){.cpu_ns = 1500,
                                  .kernel_ns = loop->kernel_ns,
                                  .kernel = earn_kernel_id("loop", 1, 0),
                                  .kernels = loop->kernels,
                                  .launches = 1,
                                  .noise = 0.1,
                                  .pause_ns = 1e6,
                                  .pause_odds = 0.0003};
    phase->h2d[0] = loop->h2d;
    phase->d2h[0] = loop->d2h;
    phase->factor[0] = loop->factor;
    phase->iterations = (uint64_t)(loop->total_ns / (1500 + loop->kernel_ns + 6000 * loop->h2d + 8500 * loop->d2h));
    return world;
}

static void print_head(void)
{
    printf("%-36s %9s %9s %9s %9s | %6s %6s | %8s %8s %5s %6s\n", "time in ms", "never", "always", "best", "auto",
           "/never", "/best", "regret", "bound", "moves", "trials");
}

struct times {
    double never_ns, always_ns, best_ns;
    struct world_result earn;
    double regret_ns, bound_ns;
};

static struct times compare(const char *name, const struct world *world, const struct settings *settings)
{
    struct times times = {.best_ns = world_best_ns(world, &cost)};
    times.never_ns = world_run(world, &cost, WORLD_NEVER, settings->regret, NULL).time_ns;
    times.always_ns = world_run(world, &cost, WORLD_ALWAYS, settings->regret, NULL).time_ns;
    times.earn = world_run(world, &cost, WORLD_EARN, settings->regret, NULL);
    times.regret_ns = times.earn.time_ns - times.never_ns;
    times.bound_ns =
        settings->regret * times.earn.time_ns + (double)EARN_CONSTANT_NS + times.earn.change_ns + times.earn.waiting_ns;
    if (name)
        printf("%-36s %9.1f %9.1f %9.1f %9.1f | %6.3f %6.3f | %8.2f %8.2f %5u %6u\n", name, times.never_ns / 1e6,
               times.always_ns / 1e6, times.best_ns / 1e6, times.earn.time_ns / 1e6,
               times.earn.time_ns / times.never_ns, times.earn.time_ns / times.best_ns, times.regret_ns / 1e6,
               times.bound_ns / 1e6, times.earn.moves, times.earn.trials);
    return times;
}

static void named_loops(const struct settings *settings)
{
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        const struct loop *loop = &loops[i];
        struct world world = world_of(loop);
        struct times times = compare(loop->name, &world, settings);
        expect(times.regret_ns <= times.bound_ns, loop->name, "regret beyond the bound");
        if (loop->of_always > 0)
            expect(times.earn.time_ns <= loop->of_always * times.always_ns, loop->name, "too far from always");
        if (loop->of_never > 0)
            expect(times.earn.time_ns <= loop->of_never * times.never_ns, loop->name, "too far from never");
        if (loop->lost_ns > 0) expect(times.regret_ns <= loop->lost_ns, loop->name, "lost too much");
    }
}

static void check_phases(const char *name, const struct world *world, double of_never, double of_best,
                         const struct settings *settings)
{
    struct times times = compare(name, world, settings);
    expect(times.regret_ns <= times.bound_ns, name, "regret beyond the bound");
    if (of_never > 0) expect(times.earn.time_ns <= of_never * times.never_ns, name, "too far from never");
    if (of_best > 0) expect(times.earn.time_ns <= of_best * times.best_ns, name, "too far from best");
}

static void named_phases(const struct settings *settings)
{
    struct world world = world_of(&loops[0]);
    uint64_t all = world.phase[0].iterations;
    world.phases = 10;
    for (unsigned i = 0; i < world.phases; i++) {
        world.phase[i] = world.phase[0];
        world.phase[i].iterations = all / 10;
        if (i % 2 == 0) continue;
        world.phase[i].kernel = earn_kernel_id("hot", 1 << 20, 0);
        world.phase[i].kernels = COST_ATOMICS;
        world.phase[i].kernel_ns = 38e3;
        world.phase[i].factor[0] = 370;
    }
    check_phases("friendly and hostile by turns", &world, 1.02, 0, settings);

    world = world_of(&loops[0]);
    world.phases = 2;
    world.phase[1] = world.phase[0];
    world.phase[1].iterations = 1;
    world.phase[1].kernel = earn_kernel_id("long", 1 << 20, 0);
    world.phase[1].kernel_ns = 5e8;
    world.phase[1].factor[0] = 3;
    check_phases("a long kernel after many loops", &world, 1.02, 1.05, settings);
    world.phase[1].kernel = world.phase[0].kernel;
    world.phase[1].launches = 10000;
    check_phases("kernels without copies after loops", &world, 1.02, 1.05, settings);

    world = world_of(&loops[3]);
    world.windows = 4;
    for (unsigned w = 0; w < 4; w++) {
        static const double factors[] = {1, 1.1, 19, 1};
        world.window[w] = w == 2 ? (struct world_window){65536, 65536} : world.window[0];
        world.phase[0].h2d[w] = w == 0 || w % 2;
        world.phase[0].d2h[w] = 1;
        world.phase[0].factor[w] = factors[w];
    }
    check_phases("four buffers, one of them hot", &world, 0, 1.05, settings);
}

static void random_worlds(const struct settings *settings)
{
    double never = 0, best = 0, earn = 0, worst = 0;
    unsigned beyond = 0;
    for (uint64_t i = 0; i < settings->worlds; i++) {
        struct world world = world_make(settings->seed + i);
        struct times times = compare(NULL, &world, settings);
        double share = times.regret_ns / times.bound_ns;
        never += times.never_ns;
        best += times.best_ns;
        earn += times.earn.time_ns;
        if (share > worst) worst = share;
        if (share <= 1) continue;
        beyond++;
        printf("world %llu: regret %.2f ms beyond its bound of %.2f ms\n", (unsigned long long)world.seed,
               times.regret_ns / 1e6, times.bound_ns / 1e6);
    }
    if (!settings->worlds) return;
    printf("%llu random worlds: never %.1f s, best %.1f s, auto %.1f s; largest regret / bound %.2f; beyond the bound: "
           "%u\n",
           (unsigned long long)settings->worlds, never / 1e9, best / 1e9, earn / 1e9, worst, beyond);
    expect(!beyond, "random worlds", "regret beyond the bound");
}

/* ---- recorded traces ---- */

#define TRACE_WINDOWS 256

struct record {
    uint64_t time_ns, bytes;
    unsigned window;
    enum cost_direction direction;
    bool waited, host;
};

struct trace {
    struct record *records;
    size_t count;
    unsigned long long names[TRACE_WINDOWS];
    unsigned windows;
    uint64_t bytes[TRACE_WINDOWS]; /* largest copy: the least that the window holds */
};

static bool trace_window(struct trace *trace, unsigned long long name, unsigned *window)
{
    for (*window = 0; *window < trace->windows; ++*window)
        if (trace->names[*window] == name) return true;
    if (trace->windows == TRACE_WINDOWS) return false;
    trace->names[trace->windows++] = name;
    return true;
}

static bool trace_read(struct trace *trace, const char *path)
{
    FILE *file = fopen(path, "r");
    char line[256], direction[8], place[8];
    size_t capacity = 0;
    memset(trace, 0, sizeof *trace);
    if (!file) {
        perror(path);
        return false;
    }
    for (unsigned number = 1; fgets(line, sizeof line, file); number++) {
        unsigned long long time_ns, name, bytes;
        unsigned waited, window;
        if (line[0] == '#' || line[0] == '\n') continue;
        if (sscanf(line, "%llu %llu %7s %llu %u %7s", &time_ns, &name, direction, &bytes, &waited, place) != 6 ||
            (strcmp(direction, "h2d") && strcmp(direction, "d2h")) ||
            (strcmp(place, "host") && strcmp(place, "device")) ||
            (trace->count && time_ns < trace->records[trace->count - 1].time_ns) ||
            !trace_window(trace, name, &window)) {
            printf("%s, line %u: not a line of a trace\n", path, number);
            fclose(file);
            return false;
        }
        if (trace->count == capacity) {
            capacity = capacity ? 2 * capacity : 4096;
            trace->records = realloc(trace->records, capacity * sizeof *trace->records);
            if (!trace->records) abort();
        }
        if (bytes > trace->bytes[window]) trace->bytes[window] = bytes;
        trace->records[trace->count++] = (struct record){time_ns,     bytes,
                                                         window,      strcmp(direction, "h2d") ? COST_D2H : COST_H2D,
                                                         waited != 0, strcmp(place, "host") == 0};
    }
    fclose(file);
    return true;
}

/* What the record's copy and the time before it would take with its window at the other place or at this one. */
static double trace_step(const struct record *record, double gap_ns, bool host, double slower)
{
    double native = cost_native_ns(&cost, record->direction, record->bytes),
           elided = cost_elided_ns(&cost, record->direction, record->bytes);
    double own = record->host ? elided : native, rest = gap_ns > own ? gap_ns - own : 0;
    if (record->waited && record->host && !host) rest /= slower;
    if (record->waited && !record->host && host) rest *= slower;
    return rest + (host ? elided : native);
}

static double trace_gap(const struct trace *trace, size_t i)
{
    return i ? (double)(trace->records[i].time_ns - trace->records[i - 1].time_ns) : 0;
}

static double trace_earn(const struct trace *trace, const struct settings *settings, unsigned *moves)
{
    static struct earn_window windows[TRACE_WINDOWS];
    struct earn_run run;
    double now_ns = 1e9;
    earn_run_begin(&run, &cost, settings->regret, (uint64_t)now_ns);
    for (unsigned w = 0; w < trace->windows; w++)
        earn_begin(&windows[w], &run, trace->bytes[w], NULL, (uint64_t)now_ns);
    for (size_t i = 0; i < trace->count; i++) {
        const struct record *record = &trace->records[i];
        struct earn_window *window = &windows[record->window];
        now_ns += trace_step(record, trace_gap(trace, i), window->place == EARN_HOST, settings->slower);
        struct earn_copy copy = {(uint64_t)now_ns, 0, record->bytes, record->direction, record->waited, 0};
        enum earn_decision decision = earn_copy(window, &run, &copy);
        if (decision == EARN_STAY) continue;
        double took = cost_move_ns(&cost, decision == EARN_TRY_HOST, window->bytes);
        now_ns += took;
        ++*moves;
        earn_moved(window, &run, decision == EARN_TRY_HOST ? EARN_HOST : EARN_DEVICE, EARN_MOVED, took,
                   (uint64_t)now_ns);
    }
    return now_ns - 1e9;
}

static void trace_replay(const char *path, const struct settings *settings)
{
    struct trace trace;
    double never = 0, always = 0, gained[TRACE_WINDOWS][2] = {{0}}, best;
    unsigned moves = 0;
    if (!trace_read(&trace, path)) {
        failures++;
        return;
    }
    for (size_t i = 0; i < trace.count; i++) {
        const struct record *record = &trace.records[i];
        double gap = trace_gap(&trace, i), device = trace_step(record, gap, false, settings->slower);
        double host = trace_step(record, gap, true, settings->slower);
        double *least =
            gained[record->window]; /* [0]: ends on the device, [1]: on the host, which costs nothing at the start */
        double to_host = cost_move_ns(&cost, true, trace.bytes[record->window]);
        double back = cost_move_ns(&cost, false, trace.bytes[record->window]);
        never += device;
        always += host;
        if (least[0] + to_host < least[1]) least[1] = least[0] + to_host;
        if (least[1] + back < least[0]) least[0] = least[1] + back;
        least[1] += host - device;
    }
    best = never;
    for (unsigned w = 0; w < trace.windows; w++) best += gained[w][0] < gained[w][1] ? gained[w][0] : gained[w][1];
    double earn = trace_earn(&trace, settings, &moves), bound = settings->regret * earn + (double)EARN_CONSTANT_NS;
    printf("%-36s %9.1f %9.1f %9.1f %9.1f | %6.3f %6.3f | %8.2f %8.2f %5u\n", path, never / 1e6, always / 1e6,
           best / 1e6, earn / 1e6, earn / never, earn / best, (earn - never) / 1e6, bound / 1e6, moves);
    if (settings->check) expect(earn - never <= bound, path, "regret beyond the bound");
    free(trace.records);
}

static void record_trace(const char *path)
{
    struct world world = world_of(&loops[0]);
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(1);
    }
    world.phase[0].iterations = 20000;
    world_run(&world, &cost, WORLD_NEVER, 0, file);
    fclose(file);
}

int main(int argc, char **argv)
{
    struct settings settings = {.worlds = 1000, .seed = 1, .regret = 0.02, .slower = 1};
    int traces = 0;
    cost_default(&cost);
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--check"))
            settings.check = true;
        else if (!strcmp(argv[i], "--worlds") && more)
            settings.worlds = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--seed") && more)
            settings.seed = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--regret") && more)
            settings.regret = strtod(argv[++i], NULL) / 100;
        else if (!strcmp(argv[i], "--slower") && more)
            settings.slower = strtod(argv[++i], NULL);
        else if (!strcmp(argv[i], "--record") && more)
            settings.record = argv[++i];
        else if (argv[i][0] != '-')
            argv[++traces] = argv[i];
        else {
            fprintf(stderr, "usage: policy_sim [--check] [--worlds N] [--seed S] [--regret PERCENT] [--slower F] "
                            "[--record FILE] [TRACE...]\n");
            return 2;
        }
    }
    if (settings.record) record_trace(settings.record);
    if (settings.record && !traces) return 0;
    print_head();
    for (int i = 1; i <= traces; i++) trace_replay(argv[i], &settings);
    if (!traces) {
        named_loops(&settings);
        named_phases(&settings);
        random_worlds(&settings);
    }
    if (settings.check || traces) return failures ? 1 : 0;
    return 0;
}
