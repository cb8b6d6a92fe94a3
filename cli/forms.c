/* Folded stacks and traces. */
#include <stdio.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/load.h"

static uint64_t weigh(const struct report_site *site, enum weight weight)
{
    uint64_t sum = 0;
    if (weight == WEIGHT_LEAKS) return report_site_leaked(site).bytes;
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) {
        const struct usage *usage = &site->usage[kind];
        if (weight == WEIGHT_TOTAL) sum += usage->total_bytes;
        if (weight == WEIGHT_PEAK) sum += usage->peak_bytes;
    }
    for (unsigned way = 0; weight == WEIGHT_COPIES && way < REPORT_COPIES; way++) sum += site->copies[way].bytes;
    return sum;
}

/* One frame; a semicolon or a line end in a name would be read as structure. */
static void write_folded_frame(struct emitter *e, const struct report_frame *frame)
{
    const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;
    const char *name = frame->function ? frame->function : slash ? slash + 1 : "unknown";
    for (; *name; name++) emitter_bytes(e, *name == ';' || *name == '\n' ? ":" : name, 1);
    if (!frame->function) emitter_text(e, "+0x%lx", (unsigned long)frame->offset);
}

void report_write_folded(struct emitter *e, const struct report *report, enum weight weight)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct report_site *site = &report->sites[i];
        uint64_t bytes = weigh(site, weight);
        bool first = true;
        if (!bytes) continue;
        for (size_t j = site->frame_count; j > 0; j--) {
            if (site->frames[j - 1].kind == FRAME_SYSTEM) continue;
            if (!first) emitter_bytes(e, ";", 1);
            write_folded_frame(e, &site->frames[j - 1]);
            first = false;
        }
        if (site->via)
            emitter_text(e, "%s[%s]", first ? "" : ";", site->via);
        else if (first)
            emitter_text(e, "unknown");
        emitter_text(e, " %lu\n", (unsigned long)bytes);
    }
}

static void event_begin(struct emitter *e, const char *name, const char *phase, uint64_t time_ns)
{
    char time[32];
    emitter_object(e, NULL);
    emitter_string(e, "name", name);
    emitter_string(e, "ph", phase);
    snprintf(time, sizeof time, "%lu.%03lu", (unsigned long)(time_ns / 1000), (unsigned long)(time_ns % 1000));
    emitter_number(e, "ts", time); /* us */
    emitter_u64(e, "pid", 1);
    emitter_u64(e, "tid", 1);
}

static void write_counters(struct emitter *e, const struct report *report, size_t i)
{
    const struct report_sample *sample = &report->samples[i];
    event_begin(e, "allocated bytes", "C", sample->time_ns);
    emitter_object(e, "args");
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++)
        if (report->totals[kind].total_count) emitter_u64(e, report_kind_names[kind], sample->live_bytes[kind]);
    emitter_end(e);
    emitter_end(e);
    event_begin(e, "copies so far", "C", sample->time_ns);
    emitter_object(e, "args");
    emitter_u64(e, "by the CPU", sample->copies_elided);
    emitter_u64(e, "by the driver", sample->copies_native);
    emitter_end(e);
    emitter_end(e);
    event_begin(e, "bytes copied by the driver so far", "C", sample->time_ns);
    emitter_object(e, "args");
    emitter_u64(e, "bytes", sample->bytes_native);
    emitter_end(e);
    emitter_end(e);
}

static void write_move(struct emitter *e, const struct report *report, const struct report_move *move)
{
    const struct report_site *site = report_site_of(report, move->site);
    const struct report_frame *frame = site ? report_site_frame(site) : NULL;
    char time[32];
    event_begin(e, move->to_host ? "move to host" : "move to device", "X", move->time_ns);
    snprintf(time, sizeof time, "%lu.%03lu", (unsigned long)(move->took_ns / 1000),
             (unsigned long)(move->took_ns % 1000));
    emitter_number(e, "dur", time);
    emitter_object(e, "args");
    emitter_u64(e, "bytes", move->bytes);
    emitter_u64(e, "site", move->site);
    if (frame) emitter_string(e, "function", frame->function);
    emitter_end(e);
    emitter_end(e);
}

void report_write_trace(struct emitter *e, const struct report *report)
{
    e->lines_depth = 2;
    emitter_object(e, NULL);
    emitter_string(e, "displayTimeUnit", "ms");
    emitter_array(e, "traceEvents");
    emitter_object(e, NULL);
    emitter_string(e, "name", "process_name");
    emitter_string(e, "ph", "M");
    emitter_u64(e, "pid", 1);
    emitter_object(e, "args");
    emitter_string(e, "name", report->program);
    emitter_end(e);
    emitter_end(e);
    for (size_t i = 0; i < report->sample_count; i++) write_counters(e, report, i);
    for (size_t i = 0; i < report->move_count; i++) write_move(e, report, &report->moves[i]);
    emitter_end(e);
    emitter_end(e);
}
