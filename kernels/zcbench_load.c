/* zcbench --from: an earlier run's numbers, as print_json wrote them, back into a bench. What cannot be understood is
 * left out; what a file of an earlier version lacks stays 0. */
#include <stdlib.h>
#include <string.h>
#include "cli/input.h"
#include "cli/json.h"
#include "kernels/zcbench.h"

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
    const char *kernel = json_text(from, "kernel");
    for (int id = 0; id < CASES; id++) {
        if (!bench_cases[id].name || strcmp(kernel, bench_cases[id].name)) continue;
        *cell = (struct cell){
            .id = (enum case_id)id, .bytes = json_u64(from, "bytes"), .density = json_number(from, "density")};
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
    snprintf(m->gpu, sizeof m->gpu, "%s", json_text(from, "gpu"));
    snprintf(m->uuid, sizeof m->uuid, "%s", json_text(from, "uuid"));
    snprintf(m->cpu, sizeof m->cpu, "%s", json_text(from, "cpu"));
    snprintf(m->date, sizeof m->date, "%s", json_text(from, "date"));
    m->sms = (int)json_number(from, "multiprocessors");
    m->memory = json_u64(from, "memory_bytes");
    m->l2 = json_u64(from, "l2_bytes");
    m->driver = (int)json_number(from, "driver");
    m->runtime = (int)json_number(from, "runtime");
    m->can_map = (int)json_number(from, "can_map_host_memory");
    m->registered_same_address = (int)json_number(from, "registered_keeps_address");
    m->native_atomics = (int)json_number(from, "host_native_atomics");
    m->pageable_access = (int)json_number(from, "pageable_memory_access");
    m->integrated = (int)json_number(from, "integrated");
}

static void kinds_load(struct bench *b, const struct json *from)
{
    JSON_EACH(item, json_get(from, "memory_kinds"))
    {
        if (b->kind_count == KINDS_MAX) return;
        struct kind_row *k = &b->kinds[b->kind_count++];
        *k = (struct kind_row){.name = json_text(item, "kind"),
                               .call = json_text(item, "call"),
                               .present = !json_string(item, "error"),
                               .allocate_ns = json_number(item, "get_ns"),
                               .release_ns = json_number(item, "release_ns"),
                               .h2d_gbs = json_number(item, "h2d"),
                               .d2h_gbs = json_number(item, "d2h"),
                               .kernel_read_gbs = json_number(item, "gpu_read"),
                               .kernel_write_gbs = json_number(item, "gpu_write"),
                               .cpu_write_gbs = json_number(item, "cpu_write"),
                               .cpu_read_gbs = json_number(item, "cpu_read")};
        snprintf(k->error, sizeof k->error, "%s", json_text(item, "error"));
    }
}

static void tunes_load(struct bench *b, const struct json *from)
{
    JSON_EACH(item, json_get(from, "tuning"))
    {
        if (b->tune_count == TUNES_MAX) return;
        struct tune_row *t = &b->tunes[b->tune_count++];
        *t = (struct tune_row){.blocks = (unsigned)json_number(item, "blocks"), .gbs = json_number(item, "gbs")};
        snprintf(t->name, sizeof t->name, "%s", json_text(item, "variant"));
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
    b->bandwidth =
        (struct bandwidth){json_number(w, "copy_h2d"),    json_number(w, "copy_d2h"),   json_number(w, "copy_both"),
                           json_number(w, "best_read"),   json_number(w, "best_write"), json_number(w, "stream_read"),
                           json_number(w, "stream_write")};
    JSON_EACH(item, json_get(from, "wrong_uses"))
    {
        if (b->wrong_count == WRONG_MAX) break;
        struct wrong_row *row = &b->wrongs[b->wrong_count++];
        row->use = json_text(item, "use");
        snprintf(row->answer, sizeof row->answer, "%s", json_text(item, "answer"));
    }
    JSON_EACH(item, json_get(from, "atomics"))
    {
        if (b->atomic_count == sizeof b->atomics / sizeof *b->atomics) break;
        b->atomics[b->atomic_count++] =
            (struct atomic_row){json_text(item, "who"), json_text(item, "scope"), json_u64(item, "expected"),
                                json_u64(item, "counted"), json_number(item, "ns")};
    }
    b->overlap_ns[0] = json_number(o, "neither_ns");
    b->overlap_ns[1] = json_number(o, "streams_ns");
    b->overlap_ns[2] = json_number(o, "zero_copy_ns");
    JSON_EACH(item, json_get(o, "bars"))
    {
        if (b->bar_count == BARS_MAX) break;
        b->bars[b->bar_count++] =
            (struct bar){(int)json_number(item, "way"), (int)json_number(item, "lane"), (int)json_number(item, "chunk"),
                         json_number(item, "start_ns"), json_number(item, "end_ns")};
    }
}

bool bench_load(struct bench *b, const char *path)
{
    size_t length;
    unsigned line = 0;
    char *bytes = file_read(path, &length);
    if (!bytes) return false;
    const struct json *root = json_parse(bytes, length, &line);
    if (!root || strcmp(json_text(root, "schema"), "zcbench-1") != 0) {
        fprintf(stderr, "zcbench: %s is not what zcbench --json writes", path);
        if (!root) fprintf(stderr, ", see line %u", line);
        fputc('\n', stderr);
        return false;
    }
    b->quick = json_bool(root, "quick");
    b->spent_s = json_number(root, "seconds");
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
