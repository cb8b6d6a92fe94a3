/* What was never freed, freed wrongly, or hidden, in the text form. */
#include <string.h>
#include "shim/report_text.h"
#include "shim/report_words.h"

enum { LEAKS_SHOWN = 20, HOST_SHOWN = 5, HIDDEN_SHOWN = 32 };

bool text_kinds(struct emitter *e, const char *before, const struct report_amount amounts[], unsigned kinds)
{
    char number[NUMBER_MAX];
    bool first = true;
    for (unsigned kind = 0; kind < kinds; kind++) {
        unsigned long count = amounts[kind].count;
        if (!count) continue;
        emitter_text(e, "%s%s %s in %lu", first ? before : ", ", bytes_text(number, amounts[kind].bytes),
                     report_kind_names[kind], count);
        if (first) emitter_text(e, " buffer%s", plural(count));
        first = false;
    }
    return !first;
}

/* Heavy by its bytes; buffers of no bytes count, too. */
static uint64_t weight_of(const struct report_site *site, unsigned from, unsigned to, bool abandoned)
{
    uint64_t weight = 0;
    for (unsigned kind = from; kind < to && !site->hidden_by; kind++) {
        const struct usage *usage = &site->usage[kind];
        weight += abandoned ? usage->abandoned_bytes + usage->abandoned_count : usage->live_bytes + usage->live_count;
    }
    return weight;
}

static uint64_t live_weight(const struct report_site *site) { return weight_of(site, 0, BUFFER_HOST, false); }
static uint64_t abandoned_weight(const struct report_site *site) { return weight_of(site, 0, BUFFER_HOST, true); }
static uint64_t host_weight(const struct report_site *site)
{
    return weight_of(site, BUFFER_HOST, BUFFER_KINDS, false);
}

/* A list of sites under a title: the kinds from `from` to before `to`. */
struct list {
    const char *title;
    uint64_t (*weigh)(const struct report_site *site);
    unsigned from, to, most;
    bool abandoned;
};

static void write_leak(struct emitter *e, const struct list *list, const struct report_site *site)
{
    char bytes[NUMBER_MAX], peak[NUMBER_MAX];
    for (unsigned kind = list->from; kind < list->to; kind++) {
        const struct usage *usage = &site->usage[kind];
        uint64_t count = list->abandoned ? usage->abandoned_count : usage->live_count;
        if (!count) continue;
        bytes_text(bytes, list->abandoned ? usage->abandoned_bytes : usage->live_bytes);
        emitter_text(e, "    %s %s in %lu buffer%s of %lu allocated here, at most %s at a time\n", bytes,
                     report_kind_names[kind], (unsigned long)count, plural(count), (unsigned long)usage->total_count,
                     bytes_text(peak, usage->peak_bytes));
    }
    text_site(e, site);
}

static void write_list(struct emitter *e, const struct report *report, const struct list *list,
                       const struct report_amount *amounts)
{
    unsigned count = text_count_sites(report, list->weigh), shown = 0;
    const struct report_site *site = NULL;
    uint64_t buffers = 0;
    for (unsigned kind = list->from; kind < list->to; kind++) buffers += amounts[kind].count;
    if (!buffers) return;
    emitter_text(e, "\n  %s\n", list->title);
    for (; shown < list->most && (site = text_next_site(report, list->weigh, site)); shown++) write_leak(e, list, site);
    text_more(e, count - shown);
    if (!count) emitter_text(e, "    (call sites unknown)\n");
}

struct hidden {
    const char *pattern;
    struct report_amount amount;
};

/* Adds the site to its pattern's line; patterns beyond the last line are left out of the list, not of the sums. */
static unsigned hidden_add(struct hidden *lines, unsigned count, const struct report_site *site)
{
    unsigned at = 0;
    while (at < count && strcmp(lines[at].pattern, site->hidden_by) != 0) at++;
    if (at == HIDDEN_SHOWN) return count;
    if (at == count) lines[count++] = (struct hidden){site->hidden_by, {0, 0}};
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) {
        lines[at].amount.bytes += site->usage[kind].live_bytes + site->usage[kind].abandoned_bytes;
        lines[at].amount.count += site->usage[kind].live_count + site->usage[kind].abandoned_count;
    }
    return count;
}

static void write_hidden(struct emitter *e, const struct report *report, const struct report_leaks *leaks)
{
    struct hidden lines[HIDDEN_SHOWN];
    unsigned count = 0;
    char number[NUMBER_MAX];
    if (!text_kinds(e, "\n  Hidden by suppressions: ", leaks->hidden, BUFFER_KINDS)) return;
    emitter_text(e, "\n");
    for (size_t i = 0; i < report->site_count; i++)
        if (report->sites[i].hidden_by) count = hidden_add(lines, count, &report->sites[i]);
    for (unsigned i = 0; i < count; i++)
        emitter_text(e, "    %s: %s in %lu\n", lines[i].pattern, bytes_text(number, lines[i].amount.bytes),
                     (unsigned long)lines[i].amount.count);
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
        text_site(e, report_site_of(report, misuse->freed));
        if (misuse->allocated) {
            emitter_text(e, "    allocated at\n");
            text_site(e, report_site_of(report, misuse->allocated));
        }
    }
    if (report->misuses_left_out) emitter_text(e, "    and %lu more\n", (unsigned long)report->misuses_left_out);
}

void text_leaks(struct emitter *e, const struct report *report, const struct report_leaks *leaks)
{
    struct list live = {report->running ? "Allocated now" : "Still allocated at exit",
                        live_weight,
                        0,
                        BUFFER_HOST,
                        LEAKS_SHOWN,
                        false},
                abandoned = {"Never freed: the context was destroyed before (as by cudaDeviceReset)",
                             abandoned_weight,
                             0,
                             BUFFER_HOST,
                             LEAKS_SHOWN,
                             true},
                host = {"Large host blocks not freed (not counted as leaks)",
                        host_weight,
                        BUFFER_HOST,
                        BUFFER_KINDS,
                        HOST_SHOWN,
                        false};
    if (report->running) host.title = "Large host blocks allocated now";
    write_list(e, report, &live, leaks->live);
    write_list(e, report, &abandoned, leaks->abandoned);
    write_misuses(e, report);
    write_hidden(e, report, leaks);
    write_list(e, report, &host, leaks->live);
}
