/* The report for people. */
#include <string.h>
#include "kernels/zcbench.h"

static void heading(FILE *to, const char *text) { fprintf(to, "\n== %s\n", text); }

static void print_machine(const struct bench *b, FILE *to)
{
    const struct machine *m = &b->machine;
    char size[32];
    fprintf(to, "zcbench on %s (%s), driver %d.%d, runtime %d.%d, host %s, %s%s\n", m->gpu,
            format_bytes(m->memory, size, sizeof size), m->driver / 1000, m->driver % 100 / 10, m->runtime / 1000,
            m->runtime % 100 / 10, *m->cpu ? m->cpu : "unknown", m->date, b->quick ? ", --quick" : "");
    fprintf(to,
            "maps host memory: %s; registered memory keeps its address: %s; CPU atomics native: %s; reads pageable "
            "memory: %s; integrated: %s\n",
            m->can_map ? "yes" : "no", m->registered_same_address ? "yes" : "no", m->native_atomics ? "yes" : "no",
            m->pageable_access ? "yes" : "no", m->integrated ? "yes" : "no");
}

static void print_decisions(const struct bench *b, FILE *to)
{
    struct decision rows[8];
    unsigned count = decisions_list(b, rows, 8), against = 0;
    heading(to, "Which one? (round trips; within 10 % take zero-copy, since it saves code)");
    fprintf(to, "%-46s %12s %12s %12s %7s  %-10s %s\n", "", "pageable", "pinned", "zero-copy", "ratio", "take",
            "textbook");
    for (unsigned i = 0; i < count; i++) {
        const struct cell *c = rows[i].cell;
        enum side copy = cell_best_copy(c), zero = cell_best_zero(c);
        double ratio = c->trip[zero].median / c->trip[copy].median;
        const char *take = ratio <= RULE ? "zero-copy" : "explicit";
        bool agrees = !strcmp(take, rows[i].textbook);
        char t[3][32];
        fprintf(to, "%-46s %12s %12s %12s %6.2fx  %-10s %s%s\n", rows[i].row,
                format_ns(c->trip[SIDE_PAGEABLE].median, t[0], 32), format_ns(c->trip[SIDE_PINNED].median, t[1], 32),
                format_ns(c->trip[zero].median, t[2], 32), ratio, take, rows[i].textbook,
                agrees ? "" : "  <- not on this machine");
        against += !agrees;
    }
    fprintf(to,
            "zero-copy is the fastest of mapped, registered and (where the CPU only writes) write-combined; the ratio "
            "is to the faster explicit copy.\n");
    if (against)
        fprintf(to, "The textbook's advice does not hold here in %u of %u rows.\n", against, count);
    else
        fprintf(to, "The textbook's advice holds here in every row.\n");
}

static void print_limit(const struct bench *b, FILE *to, enum case_id id, double density, double limit)
{
    size_t largest, at = crossover(b, id, density, limit, &largest, NULL);
    char text[32];
    size_t from = crossover_from(b, id, density, limit);
    if (!largest)
        fprintf(to, " %14s", "-");
    else if (from)
        fprintf(to, " from %9s", format_bytes(from, text, sizeof text));
    else if (at == SIZE_MAX)
        fprintf(to, " >= %11s", format_bytes(largest, text, sizeof text));
    else
        fprintf(to, " %14s", at ? format_bytes(at, text, sizeof text) : "never");
}

static void print_crossovers(const struct bench *b, FILE *to)
{
    heading(to, "Up to which size does zero-copy win the round trip?");
    fprintf(to, "%-22s %-18s %14s %14s\n", "kernel", "density", "faster", "within 10 %");
    for (unsigned i = 0; i < b->cell_count; i++) {
        const struct cell *c = &b->cells[i];
        bool head = true;
        unsigned sizes;
        for (unsigned j = 0; j < i; j++)
            if (b->cells[j].id == c->id && b->cells[j].density == c->density) head = false;
        crossover(b, c->id, c->density, 1.0, NULL, &sizes);
        if (!head || sizes < 3) continue;
        char density[32];
        fprintf(to, "%-22s %-18s", bench_cases[c->id].name, format_density(c, density, sizeof density));
        print_limit(b, to, c->id, c->density, 1.0);
        print_limit(b, to, c->id, c->density, RULE);
        fprintf(to, "\n");
    }
    fprintf(to, ">= means: at the largest size measured, too; from: at the largest, but not at the smallest. Where the "
                "data stays on the device for many launches, "
                "compare the "
                "kernels alone instead.\n");
}

static void print_cells(const struct bench *b, FILE *to)
{
    char size[32], t[7][32];
    heading(to, "Every kernel: round trip on each side, kernel alone on the device and on mapped memory (medians)");
    fprintf(to, "%-19s %9s %17s |%9s %9s %9s %9s %9s %7s |%9s %9s %7s\n", "kernel", "size", "density", "pageable",
            "pinned", "mapped", "regist.", "wr.comb.", "spread", "on device", "on host", "ratio");
    for (unsigned i = 0; i < b->cell_count; i++) {
        const struct cell *c = &b->cells[i];
        const struct spread *m = &c->trip[SIDE_MAPPED];
        char density[32];
        for (int side = 0; side < SIDES; side++)
            if (c->trip[side].samples)
                format_ns(c->trip[side].median, t[side], 32);
            else
                snprintf(t[side], 32, "-");
        fprintf(to, "%-19s %9s %17s |%9s %9s %9s %9s %9s %5.0f %% |%9s %9s %6.1fx\n", bench_cases[c->id].name,
                format_bytes(c->bytes, size, sizeof size), format_density(c, density, sizeof density), t[0], t[1], t[2],
                t[3], t[4], m->median > 0 ? 50 * (m->p90 - m->p10) / m->median : 0,
                format_ns(c->kernel[SIDE_PAGEABLE].median, t[5], 32),
                format_ns(c->kernel[SIDE_MAPPED].median, t[6], 32),
                c->kernel[SIDE_MAPPED].median / c->kernel[SIDE_PAGEABLE].median);
    }
    fprintf(to, "spread: half the distance of the 10th and the 90th percentile of the mapped side, in percent of its "
                "median.\n");
}

static void print_gbs(FILE *to, double gbs)
{
    if (gbs > 0)
        fprintf(to, " %8.2f", gbs);
    else
        fprintf(to, " %8s", "-");
}

static void print_kinds(const struct bench *b, FILE *to)
{
    heading(to, "Kinds of host memory (GB/s; allocation or registration in ms)");
    fprintf(to, "%-36s %8s %8s %8s %8s %8s %8s %8s %8s\n", "", "get", "release", "H2D", "D2H", "GPU read", "GPU writ",
            "CPU writ", "CPU read");
    for (unsigned i = 0; i < b->kind_count; i++) {
        const struct kind_row *k = &b->kinds[i];
        fprintf(to, "%-36s", k->call);
        if (!k->present) {
            fprintf(to, " not here: %s\n", k->error);
            continue;
        }
        fprintf(to, " %8.2f %8.2f", k->allocate_ns * 1e-6, k->release_ns * 1e-6);
        print_gbs(to, k->h2d_gbs);
        print_gbs(to, k->d2h_gbs);
        print_gbs(to, k->kernel_read_gbs);
        print_gbs(to, k->kernel_write_gbs);
        print_gbs(to, k->cpu_write_gbs);
        print_gbs(to, k->cpu_read_gbs);
        fprintf(to, "\n");
    }
    heading(to, "What wrong uses answer");
    for (unsigned i = 0; i < b->wrong_count; i++) fprintf(to, "%-58s %s\n", b->wrongs[i].use, b->wrongs[i].answer);
}

static void print_atomics(const struct bench *b, FILE *to)
{
    char time[32];
    heading(to, "Atomic adds of the GPU on 16 counters in mapped memory");
    for (unsigned i = 0; i < b->atomic_count; i++) {
        const struct atomic_row *a = &b->atomics[i];
        fprintf(to, "%-28s %-28s %12llu of %12llu  %s, %s\n", a->who, a->scope, a->counted, a->expected,
                a->counted == a->expected ? "exact" : "NOT EXACT", format_ns(a->ns, time, sizeof time));
    }
}

static void print_tune(const struct tune_row *t, FILE *to)
{
    fprintf(to, "  %-52s %6.1f  %s %u blocks%s", t->name, t->gbs, t->grids ? "from" : "with", t->blocks,
            t->grids ? " on;" : "");
    for (unsigned g = 0; g < t->grids; g++) fprintf(to, " %u: %.1f", t->grid[g], t->grid_gbs[g]);
    fprintf(to, "\n");
}

static void print_bandwidth(const struct bench *b, FILE *to)
{
    const struct bandwidth *w = &b->bandwidth;
    heading(to, "Bandwidth, GB/s (published for an H100: zero-copy reads 35, writes 52.8, copy engine 57)");
    fprintf(to, "copy engine: to the device %.1f, from it %.1f, both at once %.1f\n", w->copy_h2d, w->copy_d2h,
            w->copy_both);
    fprintf(to,
            "zero-copy:   stream_read %.1f, stream_write %.1f; best variants: read %.1f (%.0f %% of the copy engine), "
            "write %.1f (%.0f %%)\n",
            w->default_read, w->default_write, w->zero_read, 100 * w->zero_read / w->copy_h2d, w->zero_write,
            100 * w->zero_write / w->copy_d2h);
    for (unsigned i = 0; i < b->tune_count; i++) print_tune(&b->tunes[i], to);
}

static void print_overlap(const struct bench *b, FILE *to)
{
    static const char *const ways[] = {"neither", "streams, pinned", "zero-copy"};
    static const char lanes[] = "ikO"; /* copy in, kernel, copy out */
    const int width = 72;
    double longest = 1;
    char time[32];
    heading(to, "Overlap: copy in (i), compute (k), copy out (O)");
    for (unsigned i = 0; i < b->bar_count; i++)
        if (b->bars[i].end_ns > longest) longest = b->bars[i].end_ns;
    for (int way = 0; way < 3; way++) {
        fprintf(to, "%-16s %s\n", ways[way], format_ns(b->overlap_ns[way], time, sizeof time));
        for (int lane = 0; lane < 3; lane++) {
            char line[73];
            bool any = false;
            memset(line, '.', sizeof line - 1);
            line[width] = 0;
            for (unsigned i = 0; i < b->bar_count; i++) {
                const struct bar *bar = &b->bars[i];
                if (bar->way != way || bar->lane != lane) continue;
                any = true;
                for (int x = (int)(bar->start_ns / longest * (width - 1));
                     x <= (int)(bar->end_ns / longest * (width - 1)); x++)
                    if (x >= 0 && x < width) line[x] = lanes[lane];
            }
            if (any) fprintf(to, "  %s\n", line);
        }
    }
}

void print_report(const struct bench *b, FILE *to)
{
    print_machine(b, to);
    print_decisions(b, to);
    print_crossovers(b, to);
    print_bandwidth(b, to);
    print_kinds(b, to);
    print_atomics(b, to);
    print_overlap(b, to);
    print_cells(b, to);
    fprintf(to, "\n%u cells in %.1f s\n", b->cell_count + b->decision_count, b->spent_s);
}
