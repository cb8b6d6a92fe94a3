/* The JSON form, described in docs/report-schema.json. */
#include "shim/report_model.h"

static void write_usage(struct emitter *e, const char *key, const struct usage *usage)
{
    emitter_object(e, key);
#define USAGE(name) emitter_u64(e, #name, usage->name);
#include "shim/usage.def"
#undef USAGE
    emitter_end(e);
}

static void write_process(struct emitter *e, const struct report *report)
{
    emitter_object(e, "process");
    emitter_string(e, "program", report->program);
    emitter_u64(e, "pid", report->pid);
    emitter_string(e, "host", report->host);
    emitter_string(e, "rank", report->rank);
    emitter_string(e, "mode", report->mode);
    emitter_string(e, "cuda", report->cuda);
    emitter_bool(e, "running", report->running);
    emitter_u64(e, "started_s", report->started_s);
    emitter_u64(e, "duration_ns", report->duration_ns);
    emitter_u64(e, "processes", report->processes);
    emitter_end(e);
}

static void write_verdict(struct emitter *e, const struct report *report)
{
    struct report_leaks leaks;
    report_leaks_of(report, &leaks);
    emitter_object(e, "verdict");
    emitter_u64(e, "leaked_bytes", leaks.leaked.bytes);
    emitter_u64(e, "leaked_count", leaks.leaked.count);
    emitter_u64(e, "hidden_bytes", leaks.concealed.bytes);
    emitter_u64(e, "hidden_count", leaks.concealed.count);
    emitter_u64(e, "host_bytes", leaks.live[BUFFER_HOST].bytes);
    emitter_u64(e, "host_count", leaks.live[BUFFER_HOST].count);
    emitter_u64(e, "misuses", report_misuse_total(report));
    emitter_u64(e, "saved_ns_estimate",
                report->statistics[STATISTIC_elided_saved_ns] + report->statistics[STATISTIC_host_saved_ns]);
    emitter_end(e);
}

static void write_frame(struct emitter *e, const struct report_frame *frame)
{
    emitter_object(e, NULL);
    if (frame->function) emitter_string(e, "function", frame->function);
    if (frame->file) emitter_string(e, "file", frame->file);
    if (frame->line) emitter_u64(e, "line", frame->line);
    if (frame->inlined) emitter_bool(e, "inlined", true);
    if (frame->module) emitter_string(e, "module", frame->module);
    if (frame->build_id) emitter_string(e, "build_id", frame->build_id);
    emitter_hex(e, "offset", frame->offset);
    if (frame->in_function) emitter_hex(e, "in_function", frame->in_function);
    emitter_string(e, "kind", report_frame_names[frame->kind]);
    emitter_end(e);
}

static void write_site(struct emitter *e, const struct report_site *site)
{
    emitter_object(e, NULL);
    emitter_u64(e, "id", site->id);
    emitter_hex(e, "hash", site->hash);
    emitter_string(e, "via", site->via);
    emitter_object(e, "usage");
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++)
        if (site->usage[kind].total_count) write_usage(e, report_kind_names[kind], &site->usage[kind]);
    emitter_end(e);
    emitter_object(e, "copies");
    for (unsigned way = 0; way < REPORT_COPIES; way++) {
        const struct report_copies *copies = &site->copies[way];
        if (!copies->count) continue;
        emitter_object(e, report_copies_names[way]);
        emitter_u64(e, "count", copies->count);
        emitter_u64(e, "bytes", copies->bytes);
        emitter_u64(e, "ns", copies->ns);
        emitter_end(e);
    }
    emitter_end(e);
    emitter_u64(e, "moves_to_host", site->moves_to_host);
    emitter_u64(e, "moves_to_device", site->moves_to_device);
    emitter_u64(e, "saved_ns_estimate", site->saved_ns);
    emitter_u64(e, "lost_ns_estimate", site->lost_ns);
    emitter_u64(e, "savable_ns_estimate", site->savable_ns);
    emitter_bool(e, "on_host", site->on_host);
    emitter_bool(e, "native_only", site->native_only);
    emitter_string(e, "reason", site->reason);
    emitter_string(e, "hidden_by", site->hidden_by);
    emitter_array(e, "frames");
    for (size_t i = 0; i < site->frame_count; i++) write_frame(e, &site->frames[i]);
    emitter_end(e);
    emitter_end(e);
}

static void write_id(struct emitter *e, const char *key, uint32_t id)
{
    if (id)
        emitter_u64(e, key, id);
    else
        emitter_null(e, key);
}

static void write_events(struct emitter *e, const struct report *report)
{
    unsigned lines_depth = e->lines_depth;
    e->lines_depth = 2;
    emitter_array(e, "samples");
    for (size_t i = 0; i < report->sample_count; i++) {
        const struct report_sample *sample = &report->samples[i];
        emitter_object(e, NULL);
        emitter_u64(e, "time_ns", sample->time_ns);
        for (unsigned kind = 0; kind < BUFFER_KINDS; kind++)
            if (report->totals[kind].total_count) emitter_u64(e, report_kind_names[kind], sample->live_bytes[kind]);
        emitter_u64(e, "copies_elided", sample->copies_elided);
        emitter_u64(e, "copies_native", sample->copies_native);
        emitter_u64(e, "bytes_native", sample->bytes_native);
        emitter_end(e);
    }
    emitter_end(e);
    emitter_array(e, "moves");
    for (size_t i = 0; i < report->move_count; i++) {
        const struct report_move *move = &report->moves[i];
        emitter_object(e, NULL);
        emitter_u64(e, "time_ns", move->time_ns);
        emitter_u64(e, "took_ns", move->took_ns);
        write_id(e, "site", move->site);
        emitter_string(e, "to", move->to_host ? "host" : "device");
        emitter_u64(e, "bytes", move->bytes);
        emitter_end(e);
    }
    emitter_end(e);
    e->lines_depth = lines_depth;
}

static void write_findings(struct emitter *e, const struct report *report)
{
    unsigned lines_depth = e->lines_depth;
    e->lines_depth = 2;
    emitter_array(e, "misuses");
    for (size_t i = 0; i < report->misuse_count; i++) {
        const struct report_misuse_entry *misuse = &report->misuses[i];
        emitter_object(e, NULL);
        emitter_string(e, "kind", report_misuse_names[misuse->kind]);
        emitter_u64(e, "count", misuse->count);
        emitter_hex(e, "address", misuse->address);
        write_id(e, "allocated", misuse->allocated);
        write_id(e, "freed", misuse->freed);
        emitter_end(e);
    }
    emitter_end(e);
    emitter_u64(e, "misuses_left_out", report->misuses_left_out);
    emitter_array(e, "notes");
    for (size_t i = 0; i < report->note_count; i++) {
        emitter_object(e, NULL);
        emitter_string(e, "text", report->notes[i].text);
        emitter_u64(e, "count", report->notes[i].count);
        emitter_end(e);
    }
    emitter_end(e);
    emitter_u64(e, "notes_left_out", report->notes_left_out);
    e->lines_depth = lines_depth;
}

void report_write_json(struct emitter *e, const struct report *report)
{
    emitter_object(e, NULL);
    emitter_u64(e, "schema", REPORT_SCHEMA);
    emitter_string(e, "tool", "libzcshim");
    emitter_string(e, "version", report->version);
    write_process(e, report);
    write_verdict(e, report);
    emitter_object(e, "totals");
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) write_usage(e, report_kind_names[kind], &report->totals[kind]);
    emitter_end(e);
    emitter_object(e, "statistics");
    for (unsigned i = 0; i < REPORT_STATISTICS; i++) emitter_u64(e, report_statistic_names[i], report->statistics[i]);
    emitter_end(e);
    write_findings(e, report);
    emitter_array(e, "sites");
    for (size_t i = 0; i < report->site_count; i++) write_site(e, &report->sites[i]);
    emitter_end(e);
    write_events(e, report);
    emitter_end(e);
}
