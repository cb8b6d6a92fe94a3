/* The form for people: the verdict first, then what to act on, then what was done. */
#include "shim/report_text.h"

#include <string.h>
#include "shim/log.h"
#include "shim/report_words.h"

enum {
    PLACED_SHOWN = 12,
    ADVICE_SHOWN = 5,
    ADVICE_LEAST_NS = 1000000 /* less is not worth a line */
};

static uint64_t copies_elided(const struct report *report)
{
    return report->statistics[STATISTIC_copies_h2d_elided] + report->statistics[STATISTIC_copies_d2h_elided] +
           report->statistics[STATISTIC_copies_by_kernel];
}

static uint64_t copies_large(const struct report *report)
{
    return report->statistics[STATISTIC_host_copies_registered] + report->statistics[STATISTIC_host_copies_staged] +
           report->statistics[STATISTIC_lend_uploads] + report->statistics[STATISTIC_lend_unchanged];
}

static void write_saved(struct emitter *e, const struct report *report)
{
    char number[NUMBER_MAX];
    uint64_t small = copies_elided(report), large = copies_large(report);
    uint64_t saved = report->statistics[STATISTIC_elided_saved_ns] + report->statistics[STATISTIC_host_saved_ns];
    if (!small && !large) return;
    emitter_text(e, "; ");
    if (small) emitter_text(e, "%lu small cop%s done by the CPU", (unsigned long)small, small == 1 ? "y" : "ies");
    if (small && large) emitter_text(e, ", ");
    if (large) emitter_text(e, "%lu large cop%s sped up", (unsigned long)large, large == 1 ? "y" : "ies");
    if (saved) emitter_text(e, ", about %s saved", time_text(number, saved));
}

static void write_verdict(struct emitter *e, const struct report *report, const struct report_leaks *leaks)
{
    uint64_t allocations = 0, misuses = report_misuse_total(report);
    for (unsigned kind = 0; kind < BUFFER_HOST; kind++) allocations += report->totals[kind].total_count;
    emitter_text(e, "libzcshim: ");
    if (leaks->leaked.count) {
        bool any = text_kinds(e, "", leaks->live, BUFFER_HOST);
        if (any) emitter_text(e, report->running ? " allocated now" : " still allocated at exit");
        if (text_kinds(e, any ? "; " : "", leaks->abandoned, BUFFER_HOST))
            emitter_text(e, " not freed before the context was destroyed");
    } else if (allocations == 0) {
        emitter_text(e, strcmp(report->cuda, "bypassed") == 0
                            ? "the CUDA driver is loaded, but no call of it came through the shim: nothing is known"
                            : "no CUDA allocation was seen");
    } else {
        emitter_text(
            e, report->running ? "nothing is allocated now, after %lu allocation%s" : "no leaks in %lu allocation%s",
            (unsigned long)allocations, plural(allocations));
        if (leaks->concealed.count) emitter_text(e, " (%lu hidden)", (unsigned long)leaks->concealed.count);
    }
    if (misuses) emitter_text(e, "; %lu wrong free%s", (unsigned long)misuses, plural(misuses));
    write_saved(e, report);
    emitter_text(e, "\n");
}

static void write_process(struct emitter *e, const struct report *report)
{
    char number[NUMBER_MAX];
    const char *slash = strrchr(report->program, '/');
    emitter_text(e, "  %s", slash ? slash + 1 : report->program);
    if (report->processes > 1)
        emitter_text(e, ", %lu processes", (unsigned long)report->processes);
    else
        emitter_text(e, ", process %lu", (unsigned long)report->pid);
    if (report->host[0]) emitter_text(e, " on %s", report->host);
    if (report->rank) emitter_text(e, ", rank %s", report->rank);
    emitter_text(e, ", %s, mode %s\n", time_text(number, report->duration_ns), report->mode);
}

static uint64_t site_placed_weight(const struct report_site *site)
{
    return site->copies[COPIES_ELIDED_H2D].count + site->copies[COPIES_ELIDED_D2H].count + site->moves_to_host +
           site->moves_to_device;
}

static uint64_t site_advice_weight(const struct report_site *site)
{
    struct report_advice advice;
    report_advise(site, &advice);
    return advice.kind != ADVICE_NONE && advice.saved_ns >= ADVICE_LEAST_NS ? advice.saved_ns : 0;
}

static void write_peaks(struct emitter *e, const struct report *report)
{
    char peak[NUMBER_MAX], total[NUMBER_MAX];
    bool any = false;
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) {
        const struct usage *usage = &report->totals[kind];
        if (!usage->total_count) continue;
        if (!any) emitter_text(e, "\n  Memory over the run\n");
        any = true;
        emitter_text(e, "    %-10s  peak %s, %lu allocation%s of %s in all\n", report_kind_names[kind],
                     bytes_text(peak, usage->peak_bytes), (unsigned long)usage->total_count, plural(usage->total_count),
                     bytes_text(total, usage->total_bytes));
    }
}

static void write_placed_site(struct emitter *e, const struct report_site *site)
{
    char number[NUMBER_MAX];
    uint64_t elided = site->copies[COPIES_ELIDED_H2D].count + site->copies[COPIES_ELIDED_D2H].count;
    if (site->reason)
        emitter_text(e, "    on the %s at the end: %s\n", site->on_host ? "host" : "device", site->reason);
    emitter_text(e, "    %lu cop%s by the CPU", (unsigned long)elided, elided == 1 ? "y" : "ies");
    if (site->saved_ns) emitter_text(e, ", about %s saved", time_text(number, site->saved_ns));
    if (site->lost_ns) emitter_text(e, ", about %s lost in trials", time_text(number, site->lost_ns));
    if (site->moves_to_host) emitter_text(e, "; moved to the host %s", times_text(number, site->moves_to_host));
    if (site->moves_to_device) emitter_text(e, "; to the device %s", times_text(number, site->moves_to_device));
    emitter_text(e, "\n");
    text_site(e, site);
}

static void write_placed(struct emitter *e, const struct report *report)
{
    unsigned count = text_count_sites(report, site_placed_weight), shown = 0;
    const struct report_site *site = NULL;
    if (count) emitter_text(e, "\n  Small buffers that the shim placed\n");
    for (; shown < PLACED_SHOWN && (site = text_next_site(report, site_placed_weight, site)); shown++)
        write_placed_site(e, site);
    text_more(e, count - shown);
}

static void write_statistics(struct emitter *e, const struct report *report)
{
    char number[NUMBER_MAX];
    bool any = false;
    for (unsigned i = 0; i < REPORT_STATISTICS; i++) {
        uint64_t value = report->statistics[i];
        if (!value) continue;
        if (!any) emitter_text(e, "\n  What the shim did and saw\n");
        any = true;
        if (report_statistic_units[i] == UNIT_COUNT) text_format(number, sizeof number, "%lu", (unsigned long)value);
        if (report_statistic_units[i] == UNIT_BYTES) bytes_text(number, value);
        if (report_statistic_units[i] == UNIT_NS) time_text(number, value);
        emitter_text(e, "    %10s  %s\n", number, report_statistic_words[i]);
    }
}

static void write_advice(struct emitter *e, const struct report *report)
{
    unsigned shown = 0;
    char spent[NUMBER_MAX], saved[NUMBER_MAX], bytes[NUMBER_MAX];
    for (const struct report_site *site = NULL;
         shown < ADVICE_SHOWN && (site = text_next_site(report, site_advice_weight, site));) {
        struct report_advice advice;
        report_advise(site, &advice);
        if (++shown == 1) emitter_text(e, "\n  Copies that cost most, and what the source could do\n");
        emitter_text(e, "    %lu cop%s of about %s took %s, waits included; about %s of that can be saved\n",
                     (unsigned long)advice.copies, advice.copies == 1 ? "y" : "ies",
                     bytes_text(bytes, advice.bytes / advice.copies), time_text(spent, advice.spent_ns),
                     time_text(saved, advice.saved_ns));
        if (advice.kind == ADVICE_MAPPED)
            emitter_text(e,
                         "    by hand: cudaHostAlloc(&p, bytes, cudaHostAllocMapped) instead of cudaMalloc, and plain\n"
                         "    reads and writes after a synchronize instead of cudaMemcpy%s\n",
                         strcmp(report->mode, "observe") == 0 ? "; by itself: ZCSHIM_MODE=auto" : "");
        else
            emitter_text(e,
                         "    by hand: take the host side of these copies from cudaMallocHost, or cudaHostRegister it "
                         "once\n");
        emitter_text(e, "    buffers allocated at\n");
        text_site(e, site);
    }
}

static void write_notes(struct emitter *e, const struct report *report)
{
    if (report->note_count == 0) return;
    emitter_text(e, "\n  Good to know\n");
    for (size_t i = 0; i < report->note_count; i++) {
        emitter_text(e, "    %s", report->notes[i].text);
        if (report->notes[i].count > 1) emitter_text(e, " (%lu times)", (unsigned long)report->notes[i].count);
        emitter_text(e, "\n");
    }
    if (report->notes_left_out) emitter_text(e, "    and %lu more\n", (unsigned long)report->notes_left_out);
}

void report_write_text(struct emitter *e, const struct report *report)
{
    struct report_leaks leaks;
    report_leaks_of(report, &leaks);
    write_verdict(e, report, &leaks);
    write_process(e, report);
    text_leaks(e, report, &leaks);
    write_placed(e, report);
    write_advice(e, report);
    write_notes(e, report);
    write_peaks(e, report);
    write_statistics(e, report);
}
