#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "kernels/zcbench.h"

/* The real table is beside the kernels, in a file for the GPU. */
const struct bench_case bench_cases[CASES] = {
    [CASE_READ] = {"stream_read", "", DATA_IN, NULL, 0},
    [CASE_GATHER] = {"gather", "", DATA_IN, "fraction", 0},
    [CASE_MODIFY] = {"read_modify_write", "", DATA_IN | DATA_OUT, NULL, 0},
};
const char *const side_name[SIDES] = {"pageable", "pinned", "mapped", "registered", "write-combined"};

static void fill(struct bench *b)
{
    snprintf(b->machine.gpu, sizeof b->machine.gpu, "A \"GPU\" <&\\>");
    for (unsigned i = 0; i < 12; i++) {
        struct cell *c = &b->cells[b->cell_count++];
        c->id = i % 3 == 0 ? CASE_READ : i % 3 == 1 ? CASE_GATHER : CASE_MODIFY;
        c->bytes = i % 3 == 1 ? MIB : KIB << i;
        c->density = i % 3 == 1 ? 0.001 * i : 1;
        for (int side = 0; side < SIDE_COMBINED; side++)
            c->trip[side] = c->kernel[side] = (struct spread){1000.0 * (i + 1) + side, 900, 1e6, 7};
    }
    b->decision_count = 7;
    for (unsigned i = 0; i < 7; i++) b->decisions[i] = b->cells[i];
    b->kinds[b->kind_count++] =
        (struct kind_row){.name = "mapped", .call = "cudaHostAlloc(Mapped)", .present = true, .h2d_gbs = 50};
    b->kinds[b->kind_count++] =
        (struct kind_row){.name = "io", .call = "cudaHostRegister(IoMemory)", .error = "1 cudaErrorInvalidValue"};
    b->wrongs[b->wrong_count++] = (struct wrong_row){"free() of pinned memory", "the process dies: Aborted"};
    b->atomics[b->atomic_count++] = (struct atomic_row){"GPU alone", "device", 10, 10, 5};
    b->tunes[b->tune_count++] = (struct tune_row){"read 16 B", 132, 50, 2, {66, 132}, {25, 50}};
    b->bars[b->bar_count++] = (struct bar){0, 0, 0, 10, 2000};
    b->bars[b->bar_count++] = (struct bar){2, 1, 0, 10, 1000};
}

static void accepted_by(const char *reader, const char *path)
{
    char command[256];
    snprintf(command, sizeof command, "python3 -c '%s' %s", reader, path);
    cr_assert_eq(system(command), 0, "%s", command);
    unlink(path);
}

static void written(char *path, void (*print)(const struct bench *, FILE *))
{
    static struct bench b;
    FILE *f = fdopen(mkstemp(path), "w");
    fill(&b);
    print(&b, f);
    cr_assert_eq(fclose(f), 0);
}

Test(output, json_is_json)
{
    char path[] = "/tmp/zcbench-json-XXXXXX";
    written(path, print_json);
    accepted_by("import json,sys; d=json.load(open(sys.argv[1])); assert d[\"schema\"]==\"zcbench-1\" and "
                "len(d[\"cells\"])==12 and "
                "d[\"crossovers\"]",
                path);
}

Test(output, an_empty_bench_is_json_too)
{
    char path[] = "/tmp/zcbench-empty-XXXXXX";
    static struct bench b;
    FILE *f = fdopen(mkstemp(path), "w");
    print_json(&b, f);
    cr_assert_eq(fclose(f), 0);
    accepted_by("import json,sys; json.load(open(sys.argv[1]))", path);
}

static char *printed(const struct bench *b)
{
    char *text;
    size_t length;
    FILE *f = open_memstream(&text, &length);
    print_json(b, f);
    cr_assert_eq(fclose(f), 0);
    return text;
}

Test(output, json_that_is_loaded_is_printed_alike)
{
    char path[] = "/tmp/zcbench-load-XXXXXX";
    static struct bench b, loaded;
    fill(&b);
    snprintf(b.machine.date, sizeof b.machine.date, "2026-11-30");
    b.overlap_ns[1] = 5;
    char *text = printed(&b);
    FILE *f = fdopen(mkstemp(path), "w");
    fputs(text, f);
    cr_assert_eq(fclose(f), 0);
    cr_assert(bench_load(&loaded, path));
    cr_assert_str_eq(printed(&loaded), text);
    unlink(path);
}

Test(output, what_zcbench_did_not_write_is_not_loaded)
{
    static const char *const texts[] = {"", "{", "[]", "{\"schema\": \"zcbench-0\"}", "{\"schema\": 1}"};
    static struct bench b;
    cr_assert_not(bench_load(&b, "/nowhere/at/all.json"));
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        char path[] = "/tmp/zcbench-bad-XXXXXX";
        FILE *f = fdopen(mkstemp(path), "w");
        fputs(texts[i], f);
        cr_assert_eq(fclose(f), 0);
        cr_assert_not(bench_load(&b, path), "%s", texts[i]);
        unlink(path);
    }
}

Test(output, json_of_other_shapes_is_loaded_as_far_as_it_goes)
{
    char path[] = "/tmp/zcbench-odd-XXXXXX";
    static struct bench b;
    FILE *f = fdopen(mkstemp(path), "w");
    fputs("{\"schema\": \"zcbench-1\", \"cells\": [{\"kernel\": \"no such\"}, 5, {\"kernel\": \"stream_read\", "
          "\"round_trip_ns\": {\"mapped\": [1, 2, 3, 4, 5]}}], \"tuning\": [{\"by_blocks\": [[], 3]}], "
          "\"machine\": 7}",
          f);
    cr_assert_eq(fclose(f), 0);
    cr_assert(bench_load(&b, path));
    cr_assert_eq(b.cell_count, 1);
    cr_assert_eq(b.cells[0].trip[SIDE_MAPPED].samples, 4);
    unlink(path);
}

Test(output, csv_has_as_many_fields_in_each_line)
{
    char path[] = "/tmp/zcbench-csv-XXXXXX";
    written(path, print_csv);
    accepted_by(
        "import csv,sys; r=list(csv.reader(open(sys.argv[1]))); assert len(r)==1+12*4*2 and {len(x) for x in r}=={10}",
        path);
}

Test(output, the_plot_is_xml)
{
    char path[] = "/tmp/zcbench-svg-XXXXXX";
    static struct bench b;
    close(mkstemp(path));
    fill(&b);
    cr_assert(plot_write(&b, path));
    accepted_by(
        "import sys,xml.dom.minidom as m; d=m.parse(sys.argv[1]); assert len(d.getElementsByTagName(\"polyline\"))>3",
        path);
}

Test(output, a_plot_that_cannot_be_written_is_said)
{
    static struct bench b;
    cr_assert_not(plot_write(&b, "/nowhere/at/all.svg"));
}

Test(output, the_report_names_every_part)
{
    char path[] = "/tmp/zcbench-text-XXXXXX";
    written(path, print_report);
    accepted_by("import sys; t=open(sys.argv[1]).read(); assert all(w in t for w in (\"Which one\",\"wrong "
                "uses\",\"Overlap\",\"Atomic\"))",
                path);
}
