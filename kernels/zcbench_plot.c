/* zcbench --plot: time against size and against sparsity, both paths, crossovers marked; the overlap's timeline. */
#include <math.h>
#include <string.h>
#include "kernels/zcbench.h"
#include "kernels/zcbench_svg.h"

#define PAGE_WIDTH  1000
#define CHART_W     400
#define CHART_H     240
#define TIMELINE_H  250
#define POINTS_MAX  32
#define FROM_DEVICE (-1) /* in struct line: the kernel alone on device memory; FROM_HOST: on mapped memory */
#define FROM_HOST   (-2)

struct line {
    enum case_id id;
    int what; /* a side's round trip, FROM_DEVICE or FROM_HOST */
    const char *name, *colour;
    bool dashed;
};

struct panel {
    const char *title, *x_title;
    bool by_density;
    size_t bytes;   /* by_density: the size; 0: the largest measured */
    double density; /* else: the density */
    struct line lines[5];
    unsigned count;
    enum case_id marked; /* whose crossover is marked; CASES: none */
};

static double value_of(const struct cell *cell, int what)
{
    if (what == FROM_DEVICE) return cell->kernel[SIDE_PAGEABLE].median;
    if (what == FROM_HOST) return cell->kernel[SIDE_MAPPED].median;
    return cell->trip[what].median;
}

static unsigned points_of(const struct bench *b, const struct panel *p, const struct line *line, double *x, double *y)
{
    unsigned count = 0;
    size_t bytes = p->bytes;
    for (unsigned i = 0; p->by_density && !p->bytes && i < b->cell_count; i++)
        if (b->cells[i].id == line->id && b->cells[i].bytes > bytes) bytes = b->cells[i].bytes;
    for (unsigned i = 0; i < b->cell_count && count < POINTS_MAX; i++) {
        const struct cell *c = &b->cells[i];
        if (c->id != line->id || (p->by_density ? c->bytes != bytes : c->density != p->density)) continue;
        if (!(value_of(c, line->what) > 0)) continue;
        x[count] = p->by_density ? c->density : (double)c->bytes;
        y[count++] = value_of(c, line->what);
    }
    return count;
}

/* Where zero-copy stops being faster along the sparsity, between two measured points. */
static double density_crossover(const struct bench *b, const struct panel *p)
{
    const struct line copy = {p->lines[0].id, SIDE_PINNED, "", "", false},
                      zero = {p->lines[0].id, SIDE_MAPPED, "", "", false};
    double x[POINTS_MAX], y[POINTS_MAX], z[POINTS_MAX];
    unsigned count = points_of(b, p, &copy, x, y);
    if (points_of(b, p, &zero, x, z) != count) return 0;
    for (unsigned i = 1; i < count; i++) {
        double before = log(z[i - 1] / y[i - 1]), after = log(z[i] / y[i]);
        if (before <= 0 && after > 0) return exp(log(x[i - 1]) + before / (before - after) * log(x[i] / x[i - 1]));
    }
    return 0;
}

/* Two digits are all that is known. */
static size_t rounded(size_t bytes)
{
    size_t unit = bytes >= MIB ? MIB / 10 : KIB;
    return bytes < 10 * KIB ? bytes : (bytes + unit / 2) / unit * unit;
}

static void panel_draw(const struct bench *b, const struct panel *p, FILE *to, double left, double top)
{
    struct chart chart = {.to = to,
                          .left = left,
                          .top = top,
                          .width = CHART_W,
                          .height = CHART_H,
                          .x_axis = p->by_density ? AXIS_FRACTION : AXIS_BYTES,
                          .title = p->title,
                          .x_title = p->x_title,
                          .x_min = INFINITY,
                          .y_min = INFINITY};
    double x[POINTS_MAX], y[POINTS_MAX];
    char word[64], size[32];
    for (unsigned l = 0; l < p->count; l++) {
        unsigned count = points_of(b, p, &p->lines[l], x, y);
        for (unsigned i = 0; i < count; i++) {
            chart.x_min = fmin(chart.x_min, x[i]);
            chart.x_max = fmax(chart.x_max, x[i]);
            chart.y_min = fmin(chart.y_min, y[i]);
            chart.y_max = fmax(chart.y_max, y[i]);
        }
    }
    if (!(chart.x_max > chart.x_min)) return;
    chart.y_min *= 0.7;
    chart.y_max *= 2; /* room for the marks */
    chart_frame(&chart);
    for (unsigned l = 0; l < p->count; l++) {
        unsigned count = points_of(b, p, &p->lines[l], x, y);
        if (count) chart_line(&chart, p->lines[l].name, p->lines[l].colour, p->lines[l].dashed, x, y, count);
    }
    if (p->by_density) {
        double at = density_crossover(b, p);
        snprintf(word, sizeof word, "faster up to 1 word in %.0f", 1 / at);
        chart_mark(&chart, at, word);
    } else if (p->marked != CASES) {
        size_t at = crossover(b, p->marked, p->density, 1.0, NULL, NULL);
        size_t near = crossover(b, p->marked, p->density, RULE, NULL, NULL);
        snprintf(word, sizeof word, "faster up to %s%s", format_bytes(rounded(at), size, sizeof size),
                 near == SIZE_MAX ? ", then within 10 %" : "");
        if (at && at != SIZE_MAX) chart_mark(&chart, (double)at, word);
        snprintf(word, sizeof word, "within 10 %% up to %s", format_bytes(rounded(near), size, sizeof size));
        if (near && near != SIZE_MAX) chart_mark(&chart, (double)near, word);
    }
}

/* A copy that waits for the copy engine has been asked for, but has not begun: it begins when the one before it in its
 * lane has ended. */
static double bar_begin(const struct bench *b, const struct bar *bar)
{
    double begin = bar->start_ns;
    for (unsigned i = 0; i < b->bar_count; i++) {
        const struct bar *other = &b->bars[i];
        if (other->way == bar->way && other->lane == bar->lane && other->end_ns < bar->end_ns && other->end_ns > begin)
            begin = other->end_ns;
    }
    return begin;
}

static void time_axis(FILE *to, double left, double top, double bottom, double width, double longest)
{
    char text[32];
    double step = pow(10, floor(log10(longest)));
    if (longest / step < 4) step /= 4;
    for (double ns = 0; ns <= longest; ns += step) {
        double x = left + width * ns / longest;
        svg_line(to, x, top, x, bottom, "stroke=\"#dddddd\"");
        snprintf(text, sizeof text, "%.0f us", ns / 1e3);
        svg_text(to, x, bottom + 14, "middle", 10, "#444444", text);
    }
}

static void timeline_draw(const struct bench *b, FILE *to, double left, double top, double width)
{
    static const char *const ways[] = {"neither: copy, compute, copy", "streams with pinned memory",
                                       "zero-copy, one kernel"};
    static const char *const lanes[] = {"copy in", "kernel", "copy out"};
    static const char *const colours[] = {"#0072b2", "#e69f00", "#009e73"};
    double longest = 1, y = top + 20;
    char text[96], time[32];
    for (unsigned i = 0; i < b->bar_count; i++)
        if (b->bars[i].end_ns > longest) longest = b->bars[i].end_ns;
    svg_text(to, left + width / 2, top, "middle", 14, "#222222",
             "Overlap: the same job three ways (one measured run each)");
    time_axis(to, left, y, y + TIMELINE_H - 50, width, longest);
    for (int way = 0; way < 3; way++, y += 12) {
        snprintf(text, sizeof text, "%s: %s (median)", ways[way], format_ns(b->overlap_ns[way], time, sizeof time));
        svg_text(to, left, y + 10, "start", 12, "#222222", text);
        y += 16;
        for (int lane = way == 2; lane < (way == 2 ? 2 : 3); lane++, y += 15) {
            svg_text(to, left - 6, y + 10, "end", 10, "#444444", lanes[lane]);
            for (unsigned i = 0; i < b->bar_count; i++) {
                const struct bar *bar = &b->bars[i];
                if (bar->way != way || bar->lane != lane) continue;
                double begin = bar_begin(b, bar);
                snprintf(text, sizeof text, "%s %d: %.0f-%.0f us", lanes[lane], bar->chunk, begin / 1e3,
                         bar->end_ns / 1e3);
                svg_bar(to, left + width * begin / longest, y, width * (bar->end_ns - begin) / longest, 13,
                        colours[lane], text);
            }
        }
    }
}

#define COPIES(ID)                                                                                                     \
    {ID, SIDE_PAGEABLE, "copies, pageable", "#999999", false}, {ID, SIDE_PINNED, "copies, pinned", "#0072b2", false},  \
    {                                                                                                                  \
        ID, SIDE_MAPPED, "zero-copy", "#d55e00", false                                                                 \
    }

static const struct panel panels[] = {
    {"read-modify-write, round trip", "size", false, 0, 1, {COPIES(CASE_MODIFY)}, 3, CASE_MODIFY},
    {"streaming read, round trip", "size", false, 0, 1, {COPIES(CASE_READ)}, 3, CASE_READ},
    {"16 passes over the data, round trip", "size", false, 0, 16, {COPIES(CASE_PASSES)}, 3, CASE_PASSES},
    {"1 M random look-ups, kernel alone",
     "table size",
     false,
     0,
     MIB,
     {{CASE_LOOKUP, FROM_DEVICE, "on the device", "#0072b2", false},
      {CASE_LOOKUP, FROM_HOST, "zero-copy", "#d55e00", false},
      {CASE_LOOKUP_SHARED, FROM_HOST, "zero-copy, shared memory first", "#009e73", true}},
     3,
     CASES},
    {"gather of a fraction of the words, round trip", "fraction read", true, 0, 0, {COPIES(CASE_GATHER)}, 3, CASES},
    {"scatter to a fraction of the words, round trip",
     "fraction written",
     true,
     0,
     0,
     {COPIES(CASE_SCATTER)},
     3,
     CASES},
};

bool plot_write(const struct bench *b, const char *path)
{
    const unsigned count = sizeof panels / sizeof *panels;
    double row = CHART_H + 96, first = 60 + MAP_HEIGHT + 50, bottom = first + row * ((count + 1) / 2) - 10;
    char title[320];
    FILE *to = fopen(path, "w");
    if (!to) {
        fprintf(stderr, "zcbench: cannot write %s: %m\n", path);
        return false;
    }
    svg_begin(to, PAGE_WIDTH, bottom + TIMELINE_H + 10);
    snprintf(title, sizeof title, "Explicit copies and zero-copy, %s (medians)%s%s", b->machine.gpu,
             *b->machine.date ? ", " : "", b->machine.date);
    svg_text(to, PAGE_WIDTH / 2, 26, "middle", 17, "#222222", title);
    map_draw(b, to, 20, 60, PAGE_WIDTH - 40);
    for (unsigned i = 0; i < count; i++) panel_draw(b, &panels[i], to, i % 2 ? 580 : 80, first + row * (i / 2));
    timeline_draw(b, to, 80, bottom, PAGE_WIDTH - 110);
    svg_end(to);
    bool ok = !ferror(to);
    if (fclose(to)) ok = false;
    if (!ok) fprintf(stderr, "zcbench: cannot write %s\n", path);
    return ok;
}
