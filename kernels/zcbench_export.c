/* JSON and CSV. Times are ns, sizes bytes, speeds GB/s; what was not measured is null or empty. */
#include <string.h>
#include "kernels/zcbench.h"

static void string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', to);
        if ((unsigned char)*text < 0x20)
            fprintf(to, "\\u%04x", *text);
        else
            fputc(*text, to);
    }
    fputc('"', to);
}

static void number(FILE *to, double value)
{
    if (value > 0)
        fprintf(to, "%.10g", value);
    else
        fputs("null", to);
}

static void pair(FILE *to, const char *key, const char *text)
{
    string(to, key);
    fputs(": ", to);
    string(to, text);
}

static void spreads(FILE *to, const char *key, const struct spread *spread)
{
    bool first = true;
    fprintf(to, "\"%s\": {", key);
    for (int side = 0; side < SIDES; side++) {
        if (!spread[side].samples) continue;
        fprintf(to, "%s\"%s\": [%.0f, %.0f, %.0f, %u]", first ? "" : ", ", side_name[side], spread[side].median,
                spread[side].p10, spread[side].p90, spread[side].samples);
        first = false;
    }
    fputc('}', to);
}

static void cell_json(FILE *to, const struct cell *c)
{
    fprintf(to, "{\"kernel\": \"%s\", \"bytes\": %zu, \"density\": %.10g, ", bench_cases[c->id].name, c->bytes,
            c->density);
    if (bench_cases[c->id].density_unit) fprintf(to, "\"density_unit\": \"%s\", ", bench_cases[c->id].density_unit);
    spreads(to, "round_trip_ns", c->trip);
    fputs(", ", to);
    spreads(to, "kernel_ns", c->kernel);
    fputc('}', to);
}

static void separator(FILE *to, bool last) { fputs(last ? "\n" : ",\n", to); }

static void machine_json(const struct bench *b, FILE *to)
{
    const struct machine *m = &b->machine;
    fputs("  \"machine\": {", to);
    pair(to, "gpu", m->gpu);
    fputs(", ", to);
    pair(to, "uuid", m->uuid);
    fputs(", ", to);
    pair(to, "cpu", m->cpu);
    fputs(", ", to);
    pair(to, "date", m->date);
    fprintf(to,
            ", \"multiprocessors\": %d, \"memory_bytes\": %zu, \"l2_bytes\": %zu, \"driver\": %d, \"runtime\": %d, "
            "\"can_map_host_memory\": %d, \"registered_keeps_address\": %d, \"host_native_atomics\": %d, "
            "\"pageable_memory_access\": %d, \"integrated\": %d},\n",
            m->sms, m->memory, m->l2, m->driver, m->runtime, m->can_map, m->registered_same_address, m->native_atomics,
            m->pageable_access, m->integrated);
}

static void kinds_json(const struct bench *b, FILE *to)
{
    fputs("  \"memory_kinds\": [\n", to);
    for (unsigned i = 0; i < b->kind_count; i++) {
        const struct kind_row *k = &b->kinds[i];
        const char *const keys[] = {"get_ns",   "release_ns", "h2d",       "d2h",
                                    "gpu_read", "gpu_write",  "cpu_write", "cpu_read"};
        const double values[] = {k->allocate_ns,     k->release_ns,       k->h2d_gbs,       k->d2h_gbs,
                                 k->kernel_read_gbs, k->kernel_write_gbs, k->cpu_write_gbs, k->cpu_read_gbs};
        fputs("    {", to);
        pair(to, "kind", k->name);
        fputs(", ", to);
        pair(to, "call", k->call);
        if (!k->present) {
            fputs(", ", to);
            pair(to, "error", k->error);
        }
        for (unsigned v = 0; k->present && v < 8; v++) {
            fprintf(to, ", \"%s\": ", keys[v]);
            number(to, values[v]);
        }
        fputc('}', to);
        separator(to, i + 1 == b->kind_count);
    }
    fputs("  ],\n  \"wrong_uses\": [\n", to);
    for (unsigned i = 0; i < b->wrong_count; i++) {
        fputs("    {", to);
        pair(to, "use", b->wrongs[i].use);
        fputs(", ", to);
        pair(to, "answer", b->wrongs[i].answer);
        fputc('}', to);
        separator(to, i + 1 == b->wrong_count);
    }
    fputs("  ],\n", to);
}

static void small_tables_json(const struct bench *b, FILE *to)
{
    const struct bandwidth *w = &b->bandwidth;
    fprintf(to,
            "  \"bandwidth\": {\"copy_h2d\": %.2f, \"copy_d2h\": %.2f, \"copy_both\": %.2f, \"stream_read\": %.2f, "
            "\"stream_write\": %.2f, \"best_read\": %.2f, \"best_write\": %.2f},\n  \"tuning\": [\n",
            w->copy_h2d, w->copy_d2h, w->copy_both, w->default_read, w->default_write, w->zero_read, w->zero_write);
    for (unsigned i = 0; i < b->tune_count; i++) {
        fputs("    {", to);
        pair(to, "variant", b->tunes[i].name);
        fprintf(to, ", \"blocks\": %u, \"gbs\": %.2f, \"by_blocks\": [", b->tunes[i].blocks, b->tunes[i].gbs);
        for (unsigned g = 0; g < b->tunes[i].grids; g++)
            fprintf(to, "%s[%u, %.2f]", g ? ", " : "", b->tunes[i].grid[g], b->tunes[i].grid_gbs[g]);
        fputs("]}", to);
        separator(to, i + 1 == b->tune_count);
    }
    fputs("  ],\n  \"atomics\": [\n", to);
    for (unsigned i = 0; i < b->atomic_count; i++) {
        const struct atomic_row *a = &b->atomics[i];
        fputs("    {", to);
        pair(to, "who", a->who);
        fputs(", ", to);
        pair(to, "scope", a->scope);
        fprintf(to, ", \"expected\": %llu, \"counted\": %llu, \"ns\": %.0f}", a->expected, a->counted, a->ns);
        separator(to, i + 1 == b->atomic_count);
    }
    fputs("  ],\n  \"overlap\": {", to);
    fprintf(to, "\"neither_ns\": %.0f, \"streams_ns\": %.0f, \"zero_copy_ns\": %.0f, \"bars\": [\n", b->overlap_ns[0],
            b->overlap_ns[1], b->overlap_ns[2]);
    for (unsigned i = 0; i < b->bar_count; i++) {
        const struct bar *bar = &b->bars[i];
        fprintf(to, "    {\"way\": %d, \"lane\": %d, \"chunk\": %d, \"start_ns\": %.0f, \"end_ns\": %.0f}", bar->way,
                bar->lane, bar->chunk, bar->start_ns, bar->end_ns);
        separator(to, i + 1 == b->bar_count);
    }
    fputs("  ]},\n", to);
}

/* Along the sizes of each kernel and density; bytes null: never, -1: at the largest size, too; and where that is not so
 * at the smallest size, ..._from: the size from which it is, else null. */
static void crossovers_json(const struct bench *b, FILE *to)
{
    bool first = true;
    fputs("  \"crossovers\": [", to);
    for (unsigned i = 0; i < b->cell_count; i++) {
        const struct cell *c = &b->cells[i];
        size_t at[2], largest;
        unsigned sizes;
        bool head = true;
        for (unsigned j = 0; j < i; j++)
            if (b->cells[j].id == c->id && b->cells[j].density == c->density) head = false;
        at[0] = crossover(b, c->id, c->density, 1.0, &largest, &sizes);
        at[1] = crossover(b, c->id, c->density, RULE, NULL, NULL);
        if (!head || sizes < 3) continue;
        fprintf(to, "%s\n    {\"kernel\": \"%s\", \"density\": %.10g, \"largest\": %zu", first ? "" : ",",
                bench_cases[c->id].name, c->density, largest);
        for (int k = 0; k < 2; k++) {
            fprintf(to, ", \"%s\": ", k ? "within_10_percent" : "faster");
            if (at[k] == SIZE_MAX)
                fputs("-1", to);
            else
                number(to, (double)at[k]);
            fprintf(to, ", \"%s_from\": ", k ? "within_10_percent" : "faster");
            number(to, (double)crossover_from(b, c->id, c->density, k ? RULE : 1.0));
        }
        fputc('}', to);
        first = false;
    }
    fputs("\n  ],\n", to);
}

void print_json(const struct bench *b, FILE *to)
{
    struct decision rows[8];
    unsigned count = decisions_list(b, rows, 8);
    fputs("{\n  \"schema\": \"zcbench-1\",\n", to);
    fprintf(to, "  \"quick\": %s, \"seconds\": %.1f,\n", b->quick ? "true" : "false", b->spent_s);
    machine_json(b, to);
    fputs("  \"decisions\": [\n", to);
    for (unsigned i = 0; i < count; i++) {
        const struct cell *c = rows[i].cell;
        double ratio = c->trip[cell_best_zero(c)].median / c->trip[cell_best_copy(c)].median;
        fputs("    {", to);
        pair(to, "row", rows[i].row);
        fprintf(to, ", \"ratio\": %.3f, \"take\": \"%s\", \"textbook\": \"%s\", \"cell\": ", ratio,
                ratio <= RULE ? "zero-copy" : "explicit", rows[i].textbook);
        cell_json(to, c);
        fputc('}', to);
        separator(to, i + 1 == count);
    }
    fputs("  ],\n", to);
    crossovers_json(b, to);
    kinds_json(b, to);
    small_tables_json(b, to);
    fputs("  \"cells\": [\n", to);
    for (unsigned i = 0; i < b->cell_count; i++) {
        fputs("    ", to);
        cell_json(to, &b->cells[i]);
        separator(to, i + 1 == b->cell_count);
    }
    fputs("  ]\n}\n", to);
}

void print_csv(const struct bench *b, FILE *to)
{
    fputs("kernel,bytes,density,density_unit,side,what,median_ns,p10_ns,p90_ns,samples\n", to);
    for (unsigned i = 0; i < b->cell_count; i++) {
        const struct cell *c = &b->cells[i];
        const char *unit = bench_cases[c->id].density_unit;
        for (int side = 0; side < SIDES; side++) {
            for (int alone = 0; alone < 2; alone++) {
                const struct spread *s = alone ? &c->kernel[side] : &c->trip[side];
                if (!s->samples) continue;
                fprintf(to, "%s,%zu,%.10g,%s,%s,%s,%.0f,%.0f,%.0f,%u\n", bench_cases[c->id].name, c->bytes, c->density,
                        unit ? unit : "", side_name[side], alone ? "kernel" : "round trip", s->median, s->p10, s->p90,
                        s->samples);
            }
        }
    }
}
