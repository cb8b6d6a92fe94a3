#include "cli/load.h"

#include <string.h>
#include "cli/cli.h"
#include "cli/json.h"

static struct usage load_usage(const struct json *json)
{
    return (struct usage){
#define USAGE(name) .name = json_u64(json, #name),
#include "shim/usage.def"
#undef USAGE
    };
}

/* The place of `word` in a table of names; `count` if it is not there. */
static unsigned place_of(const char *word, const char *const *names, unsigned count)
{
    unsigned place = 0;
    while (place < count && (!word || strcmp(names[place], word) != 0)) place++;
    return place;
}

static void load_frames(struct report_site *site, const struct json *frames)
{
    site->frames = must_alloc(frames->count * sizeof *site->frames);
    JSON_EACH(json, frames)
    {
        unsigned kind = place_of(json_string(json, "kind"), report_frame_names, FRAME_KINDS);
        site->frames[site->frame_count++] = (struct report_frame){.function = json_string(json, "function"),
                                                                  .file = json_string(json, "file"),
                                                                  .module = json_string(json, "module"),
                                                                  .build_id = json_string(json, "build_id"),
                                                                  .offset = json_u64(json, "offset"),
                                                                  .in_function = json_u64(json, "in_function"),
                                                                  .line = (uint32_t)json_u64(json, "line"),
                                                                  .inlined = json_bool(json, "inlined"),
                                                                  .kind = kind < FRAME_KINDS ? kind : FRAME_PROGRAM};
    }
}

static void load_site(struct report_site *site, const struct json *json)
{
    *site = (struct report_site){.id = (uint32_t)json_u64(json, "id"),
                                 .hash = json_u64(json, "hash"),
                                 .via = json_string(json, "via"),
                                 .moves_to_host = json_u64(json, "moves_to_host"),
                                 .moves_to_device = json_u64(json, "moves_to_device"),
                                 .saved_ns = json_u64(json, "saved_ns_estimate"),
                                 .lost_ns = json_u64(json, "lost_ns_estimate"),
                                 .savable_ns = json_u64(json, "savable_ns_estimate"),
                                 .reason = json_string(json, "reason"),
                                 .on_host = json_bool(json, "on_host"),
                                 .native_only = json_bool(json, "native_only"),
                                 .hidden_by = json_string(json, "hidden_by")};
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++)
        site->usage[kind] = load_usage(json_get(json_get(json, "usage"), report_kind_names[kind]));
    for (unsigned way = 0; way < REPORT_COPIES; way++) {
        const struct json *copies = json_get(json_get(json, "copies"), report_copies_names[way]);
        site->copies[way] =
            (struct report_copies){json_u64(copies, "count"), json_u64(copies, "bytes"), json_u64(copies, "ns")};
    }
    load_frames(site, json_get(json, "frames"));
}

static void load_findings(struct report *report, const struct json *json)
{
    const struct json *misuses = json_get(json, "misuses"), *notes = json_get(json, "notes");
    report->misuses = must_alloc(misuses->count * sizeof *report->misuses);
    report->notes = must_alloc(notes->count * sizeof *report->notes);
    JSON_EACH(misuse, misuses)
    {
        unsigned kind = place_of(json_string(misuse, "kind"), report_misuse_names, MISUSE_KINDS);
        if (kind == MISUSE_KINDS) continue;
        report->misuses[report->misuse_count++] = (struct report_misuse_entry){
            kind, (uint32_t)json_u64(misuse, "allocated"), (uint32_t)json_u64(misuse, "freed"),
            json_u64(misuse, "address"), json_u64(misuse, "count")};
    }
    JSON_EACH(note, notes)
    if (json_string(note, "text"))
        report->notes[report->note_count++] =
            (struct report_note_entry){json_string(note, "text"), json_u64(note, "count")};
    report->misuses_left_out = json_u64(json, "misuses_left_out");
    report->notes_left_out = json_u64(json, "notes_left_out");
}

static void load_events(struct report *report, const struct json *json)
{
    const struct json *samples = json_get(json, "samples"), *moves = json_get(json, "moves");
    report->samples = must_alloc(samples->count * sizeof *report->samples);
    report->moves = must_alloc(moves->count * sizeof *report->moves);
    JSON_EACH(sample, samples)
    {
        struct report_sample *to = &report->samples[report->sample_count++];
        to->time_ns = json_u64(sample, "time_ns");
        for (unsigned kind = 0; kind < BUFFER_KINDS; kind++)
            to->live_bytes[kind] = json_u64(sample, report_kind_names[kind]);
        to->copies_elided = json_u64(sample, "copies_elided");
        to->copies_native = json_u64(sample, "copies_native");
        to->bytes_native = json_u64(sample, "bytes_native");
    }
    JSON_EACH(move, moves)
    {
        const char *to = json_string(move, "to");
        report->moves[report->move_count++] =
            (struct report_move){json_u64(move, "time_ns"), json_u64(move, "took_ns"), json_u64(move, "bytes"),
                                 (uint32_t)json_u64(move, "site"), to && strcmp(to, "host") == 0};
    }
}

static void load_process(struct report *report, const struct json *json)
{
    const struct json *process = json_get(json, "process");
    report->version = json_text(json, "version");
    report->program = json_text(process, "program");
    report->host = json_text(process, "host");
    report->mode = json_text(process, "mode");
    report->rank = json_string(process, "rank");
    report->cuda = json_string(process, "cuda") ? json_string(process, "cuda") : "seen";
    report->running = json_bool(process, "running");
    report->pid = json_u64(process, "pid");
    report->started_s = json_u64(process, "started_s");
    report->duration_ns = json_u64(process, "duration_ns");
    report->processes = json_u64(process, "processes") ? json_u64(process, "processes") : 1;
}

static bool is_report(const char *path, const struct json *json)
{
    const char *tool = json_string(json, "tool");
    if (!tool || strcmp(tool, "libzcshim") != 0) {
        trouble("%s is not a report of libzcshim (write them with ZCSHIM_REPORT_FORMAT=json)", path);
        return false;
    }
    if (json_u64(json, "schema") == REPORT_SCHEMA) return true;
    trouble("%s is of schema %lu, and this zcshim reads %d: take the zcshim of the release that wrote it", path,
            (unsigned long)json_u64(json, "schema"), REPORT_SCHEMA);
    return false;
}

struct report *report_load(const char *path)
{
    size_t length;
    unsigned line;
    char *text = file_read(path, &length);
    if (!text) return NULL;
    const struct json *json = json_parse(text, length, &line);
    if (!json)
        return trouble("%s, line %u: not JSON, or cut off (ZCSHIM_REPORT_FORMAT=json writes it)", path, line), NULL;
    if (!is_report(path, json)) return NULL;
    struct report *report = must_alloc(sizeof *report);
    load_process(report, json);
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++)
        report->totals[kind] = load_usage(json_get(json_get(json, "totals"), report_kind_names[kind]));
    for (unsigned i = 0; i < REPORT_STATISTICS; i++)
        report->statistics[i] = json_u64(json_get(json, "statistics"), report_statistic_names[i]);
    const struct json *sites = json_get(json, "sites");
    report->sites = must_alloc(sites->count * sizeof *report->sites);
    JSON_EACH(site, sites) load_site(&report->sites[report->site_count++], site);
    load_findings(report, json);
    load_events(report, json);
    return report;
}
