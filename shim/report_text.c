/* The form for people: the verdict first, then what to act on, then what was done. */
#include "shim/report_model.h"

#include <string.h>
#include "shim/log.h"
#include "shim/report_words.h"

enum {
    LEAKS_SHOWN = 20,
    PLACED_SHOWN = 12,
    HIDDEN_SHOWN = 32,
    ADVICE_SHOWN = 5,
    FRAMES_SHOWN = 12,
    NAME_SHOWN = 120,
    ADVICE_LEAST_NS = 1000000 /* less is not worth a line */
};

/* "1.00 KiB device in 1 buffer, 4.00 KiB pinned in 2" */
static void write_kinds(struct emitter *e, const struct report_usage usage[BUFFER_KINDS])
{
    char number[NUMBER_MAX];
    bool first = true;
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) {
        if (!usage[kind].live_count) continue;
        emitter_text(e, "%s%s %s", first ? "" : ", ", bytes_text(number, usage[kind].live_bytes),
                     report_kind_names[kind]);
        if (first)
            emitter_text(e, " in %lu buffer%s", (unsigned long)usage[kind].live_count, plural(usage[kind].live_count));
        else
            emitter_text(e, " in %lu", (unsigned long)usage[kind].live_count);
        first = false;
    }
}

static uint64_t copies_elided(const struct report *report)
{
    return report->statistics[STATISTIC_copies_h2d_elided] + report->statistics[STATISTIC_copies_d2h_elided] +
           report->statistics[STATISTIC_copies_by_kernel];
}

static uint64_t copies_large(const struct report *report)
{
    return report->statistics[STATISTIC_host_copies_registered] + report->statistics[STATISTIC_host_copies_staged];
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

static uint64_t misuses_total(const struct report *report)
{
    uint64_t total = report->misuses_left_out;
    for (size_t i = 0; i < report->misuse_count; i++) total += report->misuses[i].count;
    return total;
}

static void write_verdict(struct emitter *e, const struct report *report, const struct report_leaks *leaks)
{
    uint64_t allocations = 0, misuses = misuses_total(report);
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) allocations += report->totals[kind].total_count;
    emitter_text(e, "libzcshim: ");
    if (leaks->shown_count) {
        write_kinds(e, leaks->shown);
        emitter_text(e, report->running ? " allocated now" : " still allocated at exit");
    } else if (allocations == 0) {
        emitter_text(e, strcmp(report->cuda, "bypassed") == 0
                            ? "the CUDA driver is loaded, but no call of it came through the shim: nothing is known"
                            : "no CUDA allocation was seen");
    } else {
        emitter_text(
            e, report->running ? "nothing is allocated now, after %lu allocation%s" : "no leaks in %lu allocation%s",
            (unsigned long)allocations, plural(allocations));
        if (leaks->hidden_count) emitter_text(e, " (%lu hidden)", (unsigned long)leaks->hidden_count);
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

/* A frame as "function  file:line" or "function + offset  library", as much as is known. */
static void write_frame(struct emitter *e, const struct report_frame *frame)
{
    const char *module = frame->module ? strrchr(frame->module, '/') : NULL;
    module = module ? module + 1 : frame->module;
    emitter_text(e, "      ");
    if (frame->function && strlen(frame->function) > NAME_SHOWN)
        emitter_text(e, "%.*s...", NAME_SHOWN, frame->function);
    else if (frame->function)
        emitter_text(e, "%s", frame->function);
    if (frame->function && !frame->file && frame->in_function)
        emitter_text(e, " + 0x%lx", (unsigned long)frame->in_function);
    if (frame->file) {
        emitter_text(e, "  ");
        emitter_bytes(e, frame->file, strlen(frame->file));
        if (frame->line) emitter_text(e, ":%u", frame->line);
    } else if (module) {
        emitter_text(e, frame->function ? "  %s" : "%s + 0x%lx", module, (unsigned long)frame->offset);
        if (!frame->function && frame->build_id) emitter_text(e, "  (build-id %.16s)", frame->build_id);
    } else {
        emitter_text(e, "0x%lx  (generated code)", (unsigned long)frame->offset);
    }
    emitter_text(e, "%s\n", frame->inlined ? "  (inlined)" : "");
}

/* The program's own frames. What CUDA's libraries and the C library do around them is left out. */
static void write_site(struct emitter *e, const struct report_site *site)
{
    unsigned shown = 0;
    size_t program = 0;
    if (!site || site->frame_count == 0) {
        emitter_text(e, "      (call site unknown)\n");
        return;
    }
    if (site->via) emitter_text(e, "      by %s, called from\n", site->via);
    for (size_t i = 0; i < site->frame_count; i++) program += site->frames[i].kind == FRAME_PROGRAM;
    for (size_t i = 0; i < site->frame_count; i++) {
        if (program && site->frames[i].kind != FRAME_PROGRAM) continue;
        if (++shown > FRAMES_SHOWN) {
            emitter_text(e, "      ... %lu more\n",
                         (unsigned long)(program ? program : site->frame_count) - FRAMES_SHOWN);
            break;
        }
        write_frame(e, &site->frames[i]);
    }
}

static uint64_t site_live_bytes(const struct report_site *site)
{
    uint64_t bytes = 0;
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++)
        bytes += site->usage[kind].live_bytes + site->usage[kind].live_count;
    return bytes;
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

/* The site of the most weight below `below` (or equal and later in the list): sites in falling order without a second
 * list. */
static const struct report_site *next_site(const struct report *report, uint64_t (*weigh)(const struct report_site *),
                                           const struct report_site *after)
{
    const struct report_site *best = NULL;
    uint64_t best_weight = 0, limit = after ? weigh(after) : 0;
    for (size_t i = 0; i < report->site_count; i++) {
        const struct report_site *site = &report->sites[i];
        uint64_t weight = weigh(site);
        if (weight == 0 || (after && (weight > limit || (weight == limit && site <= after)))) continue;
        if (weight > best_weight) best = site, best_weight = weight;
    }
    return best;
}

static unsigned count_sites(const struct report *report, uint64_t (*weigh)(const struct report_site *))
{
    unsigned count = 0;
    for (size_t i = 0; i < report->site_count; i++) count += weigh(&report->sites[i]) > 0;
    return count;
}

static uint64_t leak_weight(const struct report_site *site) { return site->hidden_by ? 0 : site_live_bytes(site); }

static void write_leak(struct emitter *e, const struct report_site *site)
{
    char live[NUMBER_MAX], peak[NUMBER_MAX];
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) {
        const struct report_usage *usage = &site->usage[kind];
        if (!usage->live_count) continue;
        emitter_text(e, "    %s %s in %lu buffer%s of %lu allocated here, at most %s at a time\n",
                     bytes_text(live, usage->live_bytes), report_kind_names[kind], (unsigned long)usage->live_count,
                     plural(usage->live_count), (unsigned long)usage->total_count, bytes_text(peak, usage->peak_bytes));
    }
    write_site(e, site);
}

static void write_more(struct emitter *e, unsigned sites)
{
    if (sites) emitter_text(e, "    and at %u more site%s; the JSON report has all\n", sites, plural(sites));
}

static void write_leaks(struct emitter *e, const struct report *report, const struct report_leaks *leaks)
{
    unsigned count = count_sites(report, leak_weight), shown = 0;
    const struct report_site *site = NULL;
    if (leaks->shown_count == 0) return;
    emitter_text(e, report->running ? "\n  Allocated now\n" : "\n  Still allocated at exit\n");
    for (; shown < LEAKS_SHOWN && (site = next_site(report, leak_weight, site)); shown++) write_leak(e, site);
    write_more(e, count - shown);
    if (!count) emitter_text(e, "    (call sites unknown)\n");
}

struct hidden {
    const char *pattern;
    uint64_t bytes, count;
};

/* Adds the site to its pattern's line; patterns beyond the last line are left out of the list, not of the sums. */
static unsigned hidden_add(struct hidden *lines, unsigned count, const struct report_site *site)
{
    unsigned at = 0;
    while (at < count && strcmp(lines[at].pattern, site->hidden_by) != 0) at++;
    if (at == HIDDEN_SHOWN) return count;
    if (at == count) lines[count++] = (struct hidden){site->hidden_by, 0, 0};
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) {
        lines[at].bytes += site->usage[kind].live_bytes;
        lines[at].count += site->usage[kind].live_count;
    }
    return count;
}

static void write_hidden(struct emitter *e, const struct report *report, const struct report_leaks *leaks)
{
    struct hidden lines[HIDDEN_SHOWN];
    unsigned count = 0;
    char number[NUMBER_MAX];
    if (leaks->hidden_count == 0) return;
    emitter_text(e, "\n  Hidden by suppressions: ");
    write_kinds(e, leaks->hidden);
    emitter_text(e, "\n");
    for (size_t i = 0; i < report->site_count; i++)
        if (report->sites[i].hidden_by) count = hidden_add(lines, count, &report->sites[i]);
    for (unsigned i = 0; i < count; i++)
        emitter_text(e, "    %s: %s in %lu\n", lines[i].pattern, bytes_text(number, lines[i].bytes),
                     (unsigned long)lines[i].count);
}

static void write_misuses(struct emitter *e, const struct report *report)
{
    if (report->misuse_count == 0) return;
    emitter_text(e, "\n  Freed wrongly (the program got the driver's answer)\n");
    for (size_t i = 0; i < report->misuse_count; i++) {
        const struct report_misuse_entry *misuse = &report->misuses[i];
        emitter_text(e, "    %s\n", report_misuse_words[misuse->kind]);
        emitter_text(e, "    0x%lx", (unsigned long)misuse->address);
        if (misuse->count > 1) emitter_text(e, " and %lu more times", (unsigned long)misuse->count - 1);
        emitter_text(e, ", freed at\n");
        write_site(e, report_site_of(report, misuse->freed));
        if (misuse->allocated) {
            emitter_text(e, "    allocated at\n");
            write_site(e, report_site_of(report, misuse->allocated));
        }
    }
    if (report->misuses_left_out) emitter_text(e, "    and %lu more\n", (unsigned long)report->misuses_left_out);
}

static void write_peaks(struct emitter *e, const struct report *report)
{
    char peak[NUMBER_MAX], total[NUMBER_MAX];
    bool any = false;
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) {
        const struct report_usage *usage = &report->totals[kind];
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
    emitter_text(e, "    %lu copies by the CPU", (unsigned long)elided);
    if (site->saved_ns) emitter_text(e, ", about %s saved", time_text(number, site->saved_ns));
    if (site->lost_ns) emitter_text(e, ", about %s lost in trials", time_text(number, site->lost_ns));
    if (site->moves_to_host) emitter_text(e, "; moved to the host %s", times_text(number, site->moves_to_host));
    if (site->moves_to_device) emitter_text(e, "; to the device %s", times_text(number, site->moves_to_device));
    emitter_text(e, "\n");
    write_site(e, site);
}

static void write_placed(struct emitter *e, const struct report *report)
{
    unsigned count = count_sites(report, site_placed_weight), shown = 0;
    const struct report_site *site = NULL;
    if (count) emitter_text(e, "\n  Small buffers that the shim placed\n");
    for (; shown < PLACED_SHOWN && (site = next_site(report, site_placed_weight, site)); shown++)
        write_placed_site(e, site);
    write_more(e, count - shown);
}

static void write_statistics(struct emitter *e, const struct report *report)
{
    static const struct {
        enum report_statistic statistic;
        const char *what;
        enum { COUNT, BYTES, TIME } unit;
    } lines[] = {
#define STAT(name, measure, what)                                                                                      \
    {STATISTIC_##name, what,                                                                                           \
     sizeof(measure) == sizeof "ns"           ? TIME                                                                   \
     : measure[0] == 'b' && measure[1] == 'y' ? BYTES                                                                  \
                                              : COUNT},
#include "shim/stats.def"
#undef STAT
    };
    char number[NUMBER_MAX];
    bool any = false;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        uint64_t value = report->statistics[lines[i].statistic];
        if (!value) continue;
        if (!any) emitter_text(e, "\n  What the shim did and saw\n");
        any = true;
        if (lines[i].unit == COUNT) text_format(number, sizeof number, "%lu", (unsigned long)value);
        if (lines[i].unit == BYTES) bytes_text(number, value);
        if (lines[i].unit == TIME) time_text(number, value);
        emitter_text(e, "    %10s  %s\n", number, lines[i].what);
    }
}

static void write_advice(struct emitter *e, const struct report *report)
{
    unsigned shown = 0;
    char spent[NUMBER_MAX], saved[NUMBER_MAX], bytes[NUMBER_MAX];
    for (const struct report_site *site = NULL;
         shown < ADVICE_SHOWN && (site = next_site(report, site_advice_weight, site));) {
        struct report_advice advice;
        report_advise(site, &advice);
        if (++shown == 1) emitter_text(e, "\n  Copies that cost most, and what the source could do\n");
        emitter_text(e, "    %lu copies of about %s took %s; about %s of that can be saved\n",
                     (unsigned long)advice.copies, bytes_text(bytes, advice.bytes / advice.copies),
                     time_text(spent, advice.spent_ns), time_text(saved, advice.saved_ns));
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
        write_site(e, site);
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
    write_leaks(e, report, &leaks);
    write_misuses(e, report);
    write_hidden(e, report, &leaks);
    write_placed(e, report);
    write_advice(e, report);
    write_notes(e, report);
    write_peaks(e, report);
    write_statistics(e, report);
}
