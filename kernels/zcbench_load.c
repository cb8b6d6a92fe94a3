/* zcbench --from: an earlier run's numbers, as print_json wrote them, back into a bench. What cannot be understood is
 * left out; what a file of an earlier version lacks stays 0. */
#include <stdlib.h>
#include <string.h>
#include "cli/json.h"
#include "kernels/zcbench.h"

void *must_alloc(size_t bytes); /* by which cli/json.c allocates */

void *must_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory) return memory;
    fputs("zcbench: no memory\n", stderr);
    exit(EXIT_FAILURE);
}

static double number(const struct json *object, const char *key)
{
    const struct json *value = json_get(object, key);
    return value->type == JSON_NUMBER ? value->number : 0;
}

static const char *text(const struct json *object, const char *key)
{
    const char *value = json_string(object, key);
    return value ? value : "";
}

static struct spread spread_load(const struct json *array)
{
    double values[4] = {0};
    unsigned count = 0;
    JSON_EACH(item, array)
    if (count < 4) values[count++] = item->number;
    return (struct spread){values[0], values[1], values[2], (unsigned)values[3]};
}

static bool cell_load(struct cell *cell, const struct json *from)
{
    const char *kernel = text(from, "kernel");
    for (int id = 0; id < CASES; id++) {
        if (!bench_cases[id].name || strcmp(kernel, bench_cases[id].name)) continue;
        *cell =
            (struct cell){.id = (enum case_id)id, .bytes = json_u64(from, "bytes"), .density = number(from, "density")};
        for (int side = 0; side < SIDES; side++) {
            cell->trip[side] = spread_load(json_get(json_get(from, "round_trip_ns"), side_name[side]));
            cell->kernel[side] = spread_load(json_get(json_get(from, "kernel_ns"), side_name[side]));
        }
        return true;
    }
    return false;
}

static void machine_load(struct machine *m, const struct json *from)
{
    snprintf(m->gpu, sizeof m->gpu, "%s", text(from, "gpu"));
    snprintf(m->uuid, sizeof m->uuid, "%s", text(from, "uuid"));
    snprintf(m->cpu, sizeof m->cpu, "%s", text(from, "cpu"));
    snprintf(m->date, sizeof m->date, "%s", text(from, "date"));
    m->sms = (int)number(from, "multiprocessors");
    m->memory = json_u64(from, "memory_bytes");
    m->l2 = json_u64(from, "l2_bytes");
    m->driver = (int)number(from, "driver");
    m->runtime = (int)number(from, "runtime");
    m->can_map = (int)number(from, "can_map_host_memory");
    m->registered_same_address = (int)number(from, "registered_keeps_address");
    m->native_atomics = (int)number(from, "host_native_atomics");
    m->pageable_access = (int)number(from, "pageable_memory_access");
    m->integrated = (int)number(from, "integrated");
}

static void kinds_load(struct bench *b, const struct json *from)
{
    JSON_EACH(item, json_get(from, "memory_kinds"))
    {
        if (b->kind_count == KINDS_MAX) return;
        struct kind_row *k = &b->kinds[b->kind_count++];
        *k = (struct kind_row){.name = text(item, "kind"),
                               .call = text(item, "call"),
                               .present = !json_string(item, "error"),
                               .allocate_ns = number(item, "get_ns"),
                               .release_ns = number(item, "release_ns"),
                               .h2d_gbs = number(item, "h2d"),
                               .d2h_gbs = number(item, "d2h"),
                               .kernel_read_gbs = number(item, "gpu_read"),
                               .kernel_write_gbs = number(item, "gpu_write"),
                               .cpu_write_gbs = number(item, "cpu_write"),
                               .cpu_read_gbs = number(item, "cpu_read")};
        snprintf(k->error, sizeof k->error, "%s", text(item, "error"));
    }
}

static void tunes_load(struct bench *b, const struct json *from)
{
    JSON_EACH(item, json_get(from, "tuning"))
    {
        if (b->tune_count == TUNES_MAX) return;
        struct tune_row *t = &b->tunes[b->tune_count++];
        *t = (struct tune_row){.blocks = (unsigned)number(item, "blocks"), .gbs = number(item, "gbs")};
        snprintf(t->name, sizeof t->name, "%s", text(item, "variant"));
        JSON_EACH(pair, json_get(item, "by_blocks"))
        {
            if (t->grids == GRIDS_MAX || pair->count != 2) break;
            t->grid[t->grids] = (unsigned)pair->first->number;
            t->grid_gbs[t->grids++] = pair->first->next->number;
        }
    }
}

static void small_tables_load(struct bench *b, const struct json *from)
{
    const struct json *w = json_get(from, "bandwidth"), *o = json_get(from, "overlap");
    b->bandwidth = (struct bandwidth){number(w, "copy_h2d"),    number(w, "copy_d2h"),   number(w, "copy_both"),
                                      number(w, "best_read"),   number(w, "best_write"), number(w, "stream_read"),
                                      number(w, "stream_write")};
    JSON_EACH(item, json_get(from, "wrong_uses"))
    {
        if (b->wrong_count == WRONG_MAX) break;
        struct wrong_row *row = &b->wrongs[b->wrong_count++];
        row->use = text(item, "use");
        snprintf(row->answer, sizeof row->answer, "%s", text(item, "answer"));
    }
    JSON_EACH(item, json_get(from, "atomics"))
    {
        if (b->atomic_count == sizeof b->atomics / sizeof *b->atomics) break;
        b->atomics[b->atomic_count++] =
            (struct atomic_row){text(item, "who"), text(item, "scope"), json_u64(item, "expected"),
                                json_u64(item, "counted"), number(item, "ns")};
    }
    b->overlap_ns[0] = number(o, "neither_ns");
    b->overlap_ns[1] = number(o, "streams_ns");
    b->overlap_ns[2] = number(o, "zero_copy_ns");
    JSON_EACH(item, json_get(o, "bars"))
    {
        if (b->bar_count == BARS_MAX) break;
        b->bars[b->bar_count++] =
            (struct bar){(int)number(item, "way"), (int)number(item, "lane"), (int)number(item, "chunk"),
                         number(item, "start_ns"), number(item, "end_ns")};
    }
}

static char *whole_file(const char *path, size_t *length)
{
    FILE *f = fopen(path, "r");
    char *bytes = NULL;
    long size;
    if (f && !fseek(f, 0, SEEK_END) && (size = ftell(f)) >= 0) {
        rewind(f);
        bytes = must_alloc((size_t)size + 1);
        *length = fread(bytes, 1, (size_t)size, f);
    }
    if (f) fclose(f);
    if (!bytes) fprintf(stderr, "zcbench: cannot read %s: %m\n", path);
    return bytes;
}

bool bench_load(struct bench *b, const char *path)
{
    size_t length;
    unsigned line = 0;
    char *bytes = whole_file(path, &length);
    if (!bytes) return false;
    const struct json *root = json_parse(bytes, length, &line);
    if (!root || strcmp(text(root, "schema"), "zcbench-1") != 0) {
        fprintf(stderr, "zcbench: %s is not what zcbench --json writes", path);
        if (!root) fprintf(stderr, ", see line %u", line);
        fputc('\n', stderr);
        return false;
    }
    b->quick = json_bool(root, "quick");
    b->spent_s = number(root, "seconds");
    machine_load(&b->machine, json_get(root, "machine"));
    JSON_EACH(item, json_get(root, "decisions"))
    if (b->decision_count < sizeof b->decisions / sizeof *b->decisions)
        b->decision_count += cell_load(&b->decisions[b->decision_count], json_get(item, "cell"));
    JSON_EACH(item, json_get(root, "cells"))
    if (b->cell_count < CELLS_MAX) b->cell_count += cell_load(&b->cells[b->cell_count], item);
    kinds_load(b, root);
    tunes_load(b, root);
    small_tables_load(b, root);
    return true;
}
