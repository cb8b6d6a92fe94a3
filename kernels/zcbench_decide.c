/* What the numbers say: medians, the decision table, crossover sizes, and where the textbook is wrong here. Pure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/zcbench.h"

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spread spread_of(double *samples, unsigned count)
{
    struct spread s = {0};
    if (!count) return s;
    qsort(samples, count, sizeof *samples, compare);
    s.median = count % 2 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
    s.p10 = samples[(count - 1) / 10];
    s.p90 = samples[(count - 1) * 9 / 10];
    s.samples = count;
    return s;
}

static enum side best_of(const struct cell *cell, enum side from, enum side to)
{
    enum side best = from;
    for (enum side side = from; side <= to; side++)
        if (cell->trip[side].samples && cell->trip[side].median < cell->trip[best].median) best = side;
    return best;
}

enum side cell_best_copy(const struct cell *cell) { return best_of(cell, SIDE_PAGEABLE, SIDE_PINNED); }
enum side cell_best_zero(const struct cell *cell) { return best_of(cell, SIDE_MAPPED, SIDE_COMBINED); }

static const struct {
    const char *row, *textbook;
} rows[] = {
    {"small, seldom (4 KiB in and out, every 2 ms)", "zero-copy"},
    {"large, dense, once (every word read)", "explicit"},
    {"large, dense, 16 passes", "explicit"},
    {"sparse, medium (0.1 % of 4 MiB, random)", "zero-copy"},
    {"frequent exchange (64 B in and out)", "zero-copy"},
    {"pitfall: 1 M random look-ups in 1 MiB", "explicit"},
    {"pitfall: 65 536 atomic adds on 1 KiB", "explicit"},
};

unsigned decisions_list(const struct bench *b, struct decision *out, unsigned max)
{
    unsigned count = 0;
    for (; count < b->decision_count && count < max && count < sizeof rows / sizeof *rows; count++)
        out[count] = (struct decision){rows[count].row, rows[count].textbook, &b->decisions[count]};
    return count;
}

/* Zero-copy's time as a multiple of the best explicit copy's. */
static double ratio(const struct cell *cell)
{
    return cell->trip[cell_best_zero(cell)].median / cell->trip[cell_best_copy(cell)].median;
}

/* Where the ratio reaches the limit between two sizes: a straight line of log ratio over log size. */
static size_t between(double limit, size_t low, double low_ratio, size_t high, double high_ratio)
{
    double part = (log(limit) - log(low_ratio)) / (log(high_ratio) - log(low_ratio));
    return (size_t)exp(log((double)low) + part * (log((double)high) - log((double)low)));
}

static bool on_curve(const struct cell *cell, enum case_id id, double density)
{
    return cell->id == id && cell->density == density && cell->trip[SIDE_MAPPED].samples;
}

size_t crossover(const struct bench *b, enum case_id id, double density, double limit, size_t *largest, unsigned *sizes)
{
    size_t last = 0, found = 0;
    unsigned count = 0;
    double last_ratio = 0;
    bool open = false; /* zero-copy still within the limit at the last size */
    for (unsigned i = 0; i < b->cell_count; i++) {
        const struct cell *cell = &b->cells[i];
        if (!on_curve(cell, id, density)) continue;
        double r = ratio(cell);
        count++;
        if (r <= limit) {
            open = true;
            found = cell->bytes;
        } else {
            if (open && last) found = between(limit, last, last_ratio, cell->bytes, r);
            open = false;
        }
        last = cell->bytes;
        last_ratio = r;
    }
    if (largest) *largest = last;
    if (sizes) *sizes = count;
    return open ? SIZE_MAX : found;
}

size_t crossover_from(const struct bench *b, enum case_id id, double density, double limit)
{
    const struct cell *last = NULL;
    size_t from = 0;
    bool lost = false, lost_first = false;
    for (unsigned i = 0; i < b->cell_count; i++) {
        const struct cell *cell = &b->cells[i];
        if (!on_curve(cell, id, density)) continue;
        bool loses = ratio(cell) > limit;
        if (!last) lost_first = loses;
        if (last && lost && !loses) from = between(limit, last->bytes, ratio(last), cell->bytes, ratio(cell));
        lost = loses;
        last = cell;
    }
    return lost_first && !lost ? from : 0;
}

const char *format_density(const struct cell *cell, char *buf, size_t size)
{
    const char *unit = bench_cases[cell->id].density_unit;
    if (!unit)
        snprintf(buf, size, "%s", "");
    else if (!strcmp(unit, "fraction"))
        snprintf(buf, size, cell->density < 1 ? "1/%.0f of words" : "all words", 1 / cell->density);
    else
        snprintf(buf, size, "%.0f %s", cell->density, unit);
    return buf;
}

const char *format_bytes(size_t bytes, char *buf, size_t size)
{
    if (bytes >= MIB)
        snprintf(buf, size, bytes % MIB ? "%.1f MiB" : "%.0f MiB", (double)bytes / (double)MIB);
    else if (bytes >= KIB)
        snprintf(buf, size, bytes % KIB ? "%.1f KiB" : "%.0f KiB", (double)bytes / (double)KIB);
    else
        snprintf(buf, size, "%zu B", bytes);
    return buf;
}

const char *format_ns(double ns, char *buf, size_t size)
{
    double value = ns < 1e6 ? ns / 1e3 : ns / 1e6;
    snprintf(buf, size, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, ns < 1e6 ? "us" : "ms");
    return buf;
}
